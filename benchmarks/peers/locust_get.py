"""One GET per iteration: the Locust twin of workflows.Get."""

from locust import FastHttpUser, task


class Get(FastHttpUser):
    @task
    def home(self) -> None:
        self.client.get("/")
