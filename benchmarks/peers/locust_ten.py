"""Ten GETs in one task: the Locust twin of workflows.Ten."""

from locust import FastHttpUser, constant, task


class Ten(FastHttpUser):
    wait_time = constant(0)

    @task
    def ten(self) -> None:
        for _ in range(10):
            self.client.get("/")
