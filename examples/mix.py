"""Two kinds of users at the same time: four who browse for each one who buys.

The workflows of a file run together, on any number of cores. `-u` is the number of all users: they
are shared in the proportion of the written `vus`, here 80 to 20.

hyperscale run examples/mix.py
hyperscale run examples/mix.py -u 50      # 40 browse, 10 buy
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class _Visitor(Workflow):  # a base for both; the underscore keeps it from running by itself
    duration = "10s"
    think_time = ("50ms", "150ms")
    host = TARGET

    @step()
    async def front_page(self) -> HTTPResponse:
        return await self.client.http.get("/")

    @step()
    async def item(self, number: int) -> HTTPResponse:
        return await self.client.http.get(f"/items/{number}", name="/items/{id}")


class Browser(_Visitor):
    vus = 8

    async def flow(self) -> None:
        await self.front_page()
        for number in self.random.sample(range(1, 1000), 5):
            await self.item(number)


class Buyer(_Visitor):
    vus = 2
    thresholds = {"group_duration{group:checkout}": "p(95)<1s"}

    async def flow(self) -> None:
        await self.front_page()
        number = self.random.randint(1, 1000)
        await self.item(number)
        await self.cart(number)
        await self.pay(number)

    @step(group="checkout")
    async def cart(self, number: int) -> HTTPResponse:
        return await self.client.http.post("/items", json={"item": number})

    @step(group="checkout")
    async def pay(self, number: int) -> HTTPResponse:
        return await self.client.http.put(f"/items/{number}", json={"state": "paid"})
