"""One GET per iteration: the Locust twin of workflows.Get."""

import os

from locust import FastHttpUser, task

PATH = os.environ["BENCH_PATH"]


class Get(FastHttpUser):
    @task
    def home(self) -> None:
        self.client.get(PATH)
