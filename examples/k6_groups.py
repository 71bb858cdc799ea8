"""A k6 script, ported: groups, thresholds by tag, a trend with tags, checks, a batch.

hyperscale run examples/k6_groups.py
hyperscale run examples/k6_groups.py --threshold "http_req_duration{kind:static}: p(99)<100"
"""

import asyncio
import os

from hyperscale import Workflow, check, step
from hyperscale.testing import HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Visit(Workflow):
    stages = [("2s", 10), ("6s", 10), ("2s", 0)]
    think_time = "100ms"  # sleep() at the end of the function
    host = TARGET
    thresholds = {
        "http_req_duration{kind:api}": "p(95)<300",
        "http_req_failed{kind:static}": "rate<1%",
        "group_duration{group:buying}": "p(95)<1s",
        "time_to_first_byte{page:home}": "p(99)<500",  # in the unit that was added: milliseconds
        "checks": "rate>0.99",
    }

    async def flow(self) -> None:
        await self.front_page()
        await self.list_items()
        await self.order(self.random.randint(1, 1000))

    @step()  # a step has a duration of its own, as a group of k6
    async def front_page(self) -> HTTPResponse:
        home = await self.client.http.get("/")
        first_byte = self.metrics.trend("time_to_first_byte")
        first_byte.add(home.timings["wait"], tags={"page": "home"})
        await asyncio.gather(  # http.batch
            self.client.http.get("/json", tags={"kind": "static"}),
            self.client.http.get("/bytes/2048", tags={"kind": "static"}, name="/bytes"),
        )
        return home

    @step(group="buying", tags={"kind": "api"})
    async def list_items(self) -> HTTPResponse:
        return await self.client.http.get("/items", params={"limit": 5})

    @step(group="buying", tags={"kind": "api"})
    async def order(self, item: int) -> HTTPResponse:
        answer = await self.client.http.post("/items", json={"item": item})
        self.metrics.counter("orders").add()
        return answer

    @check("front_page")
    def says_hello(self, front_page: HTTPResponse) -> bool:
        return "Hello" in front_page.text()

    @check("order")
    def was_accepted(self, order: HTTPResponse) -> bool:
        return order.status == 201
