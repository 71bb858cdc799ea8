"""Kafka: records that the brokers acknowledge, and how long they take to their reader.

KAFKA=kafka://broker.example:9092 hyperscale run examples/kafka_orders.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, KafkaResponse

KAFKA = os.environ.get("KAFKA", "kafka://127.0.0.1:9092")


class Orders(Workflow):
    vus = 5
    duration = "10s"
    thresholds = [
        "kafka_req_duration{name:order}: p(95)<500ms",
        "kafka_req_failed: rate<1%",
        "kafka_msg_latency: p(95)<2s",
    ]

    async def on_start(self):
        self.topic = f"orders-{self.vu_id}"
        await self.client.kafka.subscribe(KAFKA, self.topic, name="subscribe")

    @step()
    async def order(self, broker: URL = KAFKA) -> KafkaResponse:
        lamp = {"item": "lamp", "count": self.random.randrange(1, 5)}
        return await self.client.kafka.produce(
            broker, self.topic, lamp, key=str(self.vu_id), acks="all", name="order"
        )

    @step("order")
    async def work(self, broker: URL = KAFKA) -> KafkaResponse:
        answer = await self.client.kafka.consume(broker, self.topic, timeout="5s", name="work")
        if answer.ok and answer.json()["item"] != "lamp":
            answer.fail(f"nobody ordered {answer.text()}")
        return answer
