"""The smallest useful test: one class, one request, ten virtual users for ten seconds.

hyperscale run examples/quickstart.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Quickstart(Workflow):
    vus = 10
    duration = "10s"

    @step()
    async def home(self, url: URL = f"{TARGET}/") -> HTTPResponse:
        return await self.client.http.get(url)
