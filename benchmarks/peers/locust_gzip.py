"""One GET of a compressed body per iteration, asked for by default: the twin of GetRead."""

import os

from locust import FastHttpUser, task

PATH = os.environ["BENCH_PATH"]


class Gzip(FastHttpUser):
    @task
    def home(self) -> None:
        _ = self.client.get(PATH).text
