"""NATS: orders that are published, workers that share them, and how long an order is on its way.

nats-server -p 4222 &
hyperscale run examples/nats_orders.py   # NATS=natss://user:password@nats.example for another
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, NATSResponse

NATS = os.environ.get("NATS", "nats://127.0.0.1:4222")


class Orders(Workflow):
    vus = 10
    duration = "10s"
    thresholds = [
        "nats_req_duration{name:order}: p(95)<250ms",
        "nats_req_failed: rate<1%",
        "nats_msg_latency: p(95)<500ms",
    ]

    async def on_start(self):
        self.subject = f"orders.{self.vu_id}"
        await self.client.nats.subscribe(NATS, self.subject, queue="workers", name="subscribe")

    @step()
    async def order(self, server: URL = NATS) -> NATSResponse:
        lamp = {"item": "lamp", "count": self.random.randrange(1, 5)}
        return await self.client.nats.publish(server, self.subject, lamp, name="order")

    @step("order")
    async def work(self, server: URL = NATS) -> NATSResponse:
        answer = await self.client.nats.consume(
            server, self.subject, queue="workers", timeout="5s", name="work"
        )
        if answer.ok and answer.json()["item"] != "lamp":
            answer.fail(f"nobody ordered {answer.text()}")
        return answer
