"""One GET per iteration, by one of three weighted tasks: the Locust twin of Weighted."""

from locust import FastHttpUser, constant, task


class Weighted(FastHttpUser):
    wait_time = constant(0)

    @task(10)
    def browse(self) -> None:
        self.client.get("/")

    @task(3)
    def view(self) -> None:
        self.client.get("/")

    @task(1)
    def order(self) -> None:
        self.client.get("/")
