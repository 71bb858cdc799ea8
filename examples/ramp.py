"""A ramp: up to 50 users, hold, down again. Each waits like a person between iterations.

hyperscale run examples/ramp.py
hyperscale run examples/ramp.py -s 10s:20 -s 1m:20 -s 10s:0
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Ramp(Workflow):
    stages = [("10s", 50), ("20s", 50), ("5s", 0)]
    think_time = "100ms"

    @step()
    async def read(self, url: URL = f"{TARGET}/json") -> HTTPResponse:
        return await self.client.http.get(url)
