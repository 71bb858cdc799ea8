"""RabbitMQ: a queue for each user, messages that the server confirms, and how long they take.

rabbitmq-server &
hyperscale run examples/rabbitmq_orders.py  # RABBITMQ=amqps://user:password@host/vhost for another
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, RabbitMQResponse

RABBITMQ = os.environ.get("RABBITMQ", "amqp://127.0.0.1:5672")


class Orders(Workflow):
    vus = 10
    duration = "10s"
    thresholds = [
        "rabbitmq_req_duration{name:order}: p(95)<250ms",
        "rabbitmq_req_failed: rate<1%",
        "rabbitmq_msg_latency: p(95)<500ms",
    ]

    async def on_start(self):
        self.queue = f"orders-{self.vu_id}"
        await self.client.rabbitmq.declare(RABBITMQ, self.queue, auto_delete=True, name="declare")

    @step()
    async def order(self, server: URL = RABBITMQ) -> RabbitMQResponse:
        lamp = {"item": "lamp", "count": self.random.randrange(1, 5)}
        return await self.client.rabbitmq.publish(server, self.queue, lamp, name="order")

    @step("order")
    async def work(self, server: URL = RABBITMQ) -> RabbitMQResponse:
        answer = await self.client.rabbitmq.consume(server, self.queue, timeout="5s", name="work")
        if answer.ok and answer.json()["item"] != "lamp":
            answer.fail(f"nobody ordered {answer.text()}")
        return answer
