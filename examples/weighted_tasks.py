"""Weighted tasks without a flow: each iteration picks one of the steps, by weight.

Steps without a weight run in every iteration, before or after the choice as they are written.
Here 10 of 16 iterations look at a product, 4 search, 2 buy, and all of them read the front page.

hyperscale run examples/weighted_tasks.py
hyperscale run examples/weighted_tasks.py --seed 7     # the same choices in every run
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Shopper(Workflow):
    vus = 10
    duration = "10s"
    think_time = ("20ms", "60ms")

    @step()
    async def front_page(self, url: URL = f"{TARGET}/") -> HTTPResponse:
        return await self.client.http.get(url)

    @step(weight=10)
    async def product(self) -> HTTPResponse:
        number = self.random.randint(1, 1000)
        return await self.client.http.get(f"{TARGET}/items/{number}", name="/items/{id}")

    @step(weight=4, times=2)
    async def search(self, url: URL = f"{TARGET}/items") -> HTTPResponse:
        return await self.client.http.get(url, params={"limit": 5})

    @step(weight=2, tags={"kind": "write"})
    async def buy(self, url: URL = f"{TARGET}/items") -> HTTPResponse:
        return await self.client.http.post(url, json={"item": self.random.randint(1, 1000)})
