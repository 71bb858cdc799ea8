"""HTTP/2 with every server that chooses it, HTTP/1.1 with the others.

TARGET=https://shop.example hyperscale run examples/http_auto.py
"""

import os

from hyperscale import HTTPOptions, Workflow, step
from hyperscale.testing import URL, HTTPResponse


class Shop(Workflow):
    vus = 10
    duration = "10s"
    http = HTTPOptions(base_url=os.environ.get("TARGET", "http://127.0.0.1:8080"), version="auto")
    thresholds = ["http_req_failed: rate < 1%"]

    @step()
    async def look(self, url: URL = "/json") -> HTTPResponse:
        return await self.client.http.get(url)
