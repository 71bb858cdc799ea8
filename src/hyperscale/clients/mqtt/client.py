"""MQTT 5: publish with QoS 0, 1 or 2, subscribe, and consume the next message.

The packets are our own, in the style of our WebSocket frames: the clients of Python connect in
threads, read byte by byte, and take a refused message of QoS 2 for a delivered one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any, ClassVar, cast

from hyperscale.clients.contract import Call
from hyperscale.clients.messages import consumed, stamped
from hyperscale.clients.mqtt.packets import LENGTH_MAX, TEXT_MAX
from hyperscale.clients.mqtt.session import Session
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.payload import payload_of
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import MQTTResponse


class MQTTPool(AddressPool):
    kind = "mqtt"
    schemes: ClassVar = {"mqtt": False, "mqtts": True}
    ports: ClassVar = {"mqtt": (False, 1883), "mqtts": (True, 8883)}

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.addresses = Services(self.network, self.ports)

    def client(self) -> MQTTClient:
        return MQTTClient(self)


class MQTTClient(AddressClient[MQTTPool, Session, MQTTResponse]):
    response = MQTTResponse

    async def publish(
        self,
        address: str | URL,
        topic: str,
        data: Any,
        *,
        qos: int = 1,
        retain: bool = False,
        headers: Mapping[str, Any] | None = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> MQTTResponse:
        """Send a message; with QoS 1 or 2, until the broker has acknowledged it."""
        sent = payload_of(data)
        _checked(topic, qos)
        if "+" in topic or "#" in topic:
            raise BadInput(f"{topic!r} has a wildcard, which is for subscriptions")
        if len(sent) > LENGTH_MAX - 4 * TEXT_MAX:
            raise BadInput(f"a message of {len(sent)} bytes is more than MQTT can send")
        headers_now = partial(stamped, headers)
        if max(map(len, map(str.encode, chain(*headers_now().items())))) > TEXT_MAX:
            raise BadInput(f"a header of MQTT has at most {TEXT_MAX} bytes")

        async def talk(session: Session, call: Call, answer: MQTTResponse) -> None:
            answer.topic = topic
            await session.publish(call, answer, topic, sent, qos, bool(retain), headers_now)

        return await self._on("PUBLISH", address, talk, timeout, name or topic, sent)

    async def subscribe(
        self,
        address: str | URL,
        topic: str,
        *,
        qos: int = 1,
        timeout: Any = None,
        name: str | None = None,
    ) -> MQTTResponse:
        """From now on the broker sends what is published there; `consume` gives it out."""
        _checked(topic, qos)

        async def talk(session: Session, call: Call, answer: MQTTResponse) -> None:
            answer.topic = topic
            call.begin()
            await session.subscribe(call, answer, topic, qos)

        return await self._on("SUBSCRIBE", address, talk, timeout, name or topic)

    async def consume(
        self,
        address: str | URL,
        topic: str,
        *,
        qos: int = 1,
        timeout: Any = None,
        name: str | None = None,
    ) -> MQTTResponse:
        """The next message of a subscription, which is made if it is not there yet."""
        _checked(topic, qos)

        async def talk(session: Session, call: Call, answer: MQTTResponse) -> None:
            answer.topic = topic
            if topic not in session.inboxes:
                await session.subscribe(call, answer, topic, qos)
                if not answer.ok:
                    return
            call.begin()
            consumed("mqtt", await session.inboxes.take(topic), call, answer)

        # What does not come in time may still come: the connection stays.
        return await self._on("CONSUME", address, talk, timeout, name or topic, keeps=True)

    async def _open(self, endpoint: Endpoint, call: Call) -> Session:
        pool, service = self._pool, cast(Service, endpoint)
        sock, call.connect = await pool.network.open(service, pool.tls)
        most = pool.options.max_response_bytes
        session = Session(pool.network, most, service.authority, sock)
        try:
            await session.greet(service.user, service.password)
        except BaseException:
            session.shut()
            raise
        return session


def _checked(topic: Any, qos: Any) -> None:
    if not isinstance(topic, str) or not topic or "\0" in topic:
        raise BadInput(f"{topic!r} is not a topic of MQTT", "write shop/orders")
    if len(topic.encode("utf-8", "replace")) > TEXT_MAX:
        raise BadInput(f"a topic of MQTT has at most {TEXT_MAX} bytes")
    if type(qos) is not int or not 0 <= qos <= 2:
        raise BadInput(f"qos is {qos!r} but must be 0, 1 or 2")
