"""HTTP/3: the parts of a page at the same time, on one QUIC connection of each virtual user.

pip install 'hyperscale-loadtest[http3]'
hyperscale demo --serve --tls            # speaks HTTP/3 at its port, over UDP
hyperscale run examples/http3.py
"""

import asyncio
import os

from hyperscale import HTTPOptions, Workflow, step
from hyperscale.testing import URL, HTTP3Response

PARTS = ["/items/1", "/items/2", "/bytes/20000"]


class Page(Workflow):
    vus = 10
    duration = "10s"
    http = HTTPOptions(
        base_url=os.environ.get("TARGET", "https://127.0.0.1:8080"),
        verify=False,  # the demo makes a certificate for itself
    )
    thresholds = ["http_req_failed: rate < 1%"]

    @step()
    async def page(self, url: URL = "/json") -> HTTP3Response:
        first = await self.client.http3.get(url)
        await asyncio.gather(*(self.client.http3.get(part) for part in PARTS))
        return first

    @step()
    async def order(self) -> HTTP3Response:
        return await self.client.http3.post("/items", json={"name": "tea"}, expect=201)
