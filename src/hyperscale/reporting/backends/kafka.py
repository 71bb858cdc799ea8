"""Points as JSON messages of a Kafka topic, by aiokafka: `kafka://host:9092/topic`.

A message is one row: what it is about, its labels, counts and latencies. Its key is the run, so
that the messages of a run keep their order.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import msgspec

from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points, Row


class KafkaConfig(Config, frozen=True, kw_only=True):
    scheme = "kafka"
    path_field = "topic"

    host: str = "localhost"
    port: int = 9092
    topic: str = "hyperscale"
    client_id: str = "hyperscale"
    username: str = ""
    password: str = ""
    sasl_mechanism: str = "PLAIN"  # when there is a username
    secure: bool = False

    def backend(self) -> Backend:
        return KafkaReporter(self)


class KafkaReporter(Backend):
    needs = "aiokafka"
    extra = "kafka"
    live = True

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self._producer: Any = None

    async def connect(self) -> None:
        aiokafka = importlib.import_module("aiokafka")
        config = self._config
        protocol = ("SASL_" if config.username else "") + ("SSL" if config.secure else "PLAINTEXT")
        sasl = {
            "sasl_mechanism": config.sasl_mechanism,
            "sasl_plain_username": config.username,
            "sasl_plain_password": config.password,
        }
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=f"{config.host}:{config.port}",
            client_id=config.client_id,
            security_protocol=protocol,
            ssl_context=importlib.import_module("ssl").create_default_context()
            if config.secure
            else None,
            acks="all",
            linger_ms=50,
            **(sasl if config.username else {}),
        )
        await self._producer.start()

    async def submit(self, points: Sequence[Points]) -> None:
        """Known to be written when this returns."""
        sent = [
            await self._producer.send(
                self._config.topic,
                msgspec.json.encode(message(each, row)),
                key=each.common.get("run", "").encode(),
                timestamp_ms=round(each.time_s * 1000),
            )
            for each in points
            for row in each.rows
        ]
        for one in sent:
            await one

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()


def message(points: Points, row: Row) -> dict[str, object]:
    return {
        "time": round(points.time_s, 3),
        "about": row.about,
        **points.common,
        **row.labels,
        **row.counts,
        **row.gauges,
    }
