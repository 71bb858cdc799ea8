"""One POST of 10 KB per iteration: the Locust twin of workflows.Post."""

import os

from locust import FastHttpUser, task

PATH = os.environ["BENCH_PATH"]
BODY = b"x" * 10_000


class Post(FastHttpUser):
    @task
    def post(self) -> None:
        self.client.post(PATH, data=BODY)
