"""HTTP/2: the parts of a page at the same time, on one connection of each virtual user.

hyperscale demo --serve                  # speaks HTTP/2 at its port
hyperscale run examples/http2.py
"""

import asyncio
import os

from hyperscale import HTTPOptions, Workflow, step
from hyperscale.testing import URL, HTTP2Response

PARTS = ["/items/1", "/items/2", "/bytes/20000"]


class Page(Workflow):
    vus = 10
    duration = "10s"
    http = HTTPOptions(base_url=os.environ.get("TARGET", "http://127.0.0.1:8080"))
    thresholds = ["http_req_failed: rate < 1%"]

    @step()
    async def page(self, url: URL = "/json") -> HTTP2Response:
        first = await self.client.http2.get(url)
        await asyncio.gather(*(self.client.http2.get(part) for part in PARTS))
        return first

    @step()
    async def order(self) -> HTTP2Response:
        return await self.client.http2.post("/items", json={"name": "tea"}, expect=201)
