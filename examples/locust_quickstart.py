"""Locust's quickstart, ported: log in once, then one of two weighted tasks, then wait.

Every GET of the loop is a request of its own, all under one name, as in Locust. The waits are a
tenth of Locust's, so that a short run shows something.

hyperscale run examples/locust_quickstart.py
hyperscale run examples/locust_quickstart.py -u 50 -d 1m --host http://127.0.0.1:8080
"""

import asyncio
import os

from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class QuickstartUser(Workflow):
    vus = 10
    duration = "10s"
    think_time = ("100ms", "500ms")
    host = TARGET

    async def on_start(self) -> None:
        await self.client.http.post("/login", json={"user": "foo", "password": "bar"})

    @step(weight=1)
    async def hello_world(self) -> HTTPResponse:
        await self.client.http.get("/")
        return await self.client.http.get("/json")

    @step(weight=3)
    async def view_items(self) -> HTTPResponse:
        for item_id in range(1, 11):
            item = await self.client.http.get(f"/items/{item_id}", name="/items")
            await asyncio.sleep(0.1)
        return item
