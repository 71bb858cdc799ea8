"""RabbitMQ: publish until the server confirms it, and consume the next message of a queue.

pamqp, the codec of aio-pika, packs and reads the frames, on a connection that is ours: when a
message was written and its confirmation came is measured at the socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from hyperscale.clients.contract import Call
from hyperscale.clients.messages import consumed, stamped
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.payload import payload_of
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.clients.rabbitmq.session import Session, amqp
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import RabbitMQResponse

NAME_BYTES = 255  # of a queue, an exchange or a routing key


class RabbitMQPool(AddressPool):
    kind = "rabbitmq"
    schemes: ClassVar = {"amqp": False, "amqps": True}
    ports: ClassVar = {"amqp": (False, 5672), "amqps": (True, 5671)}

    def __init__(self, *args: Any) -> None:
        self.amqp = amqp()
        super().__init__(*args)
        self.addresses = Services(self.network, self.ports)

    def client(self) -> RabbitMQClient:
        return RabbitMQClient(self)


class RabbitMQClient(AddressClient[RabbitMQPool, Session, RabbitMQResponse]):
    response = RabbitMQResponse

    async def declare(
        self,
        address: str | URL,
        queue: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        exclusive: bool = False,
        timeout: Any = None,
        name: str | None = None,
    ) -> RabbitMQResponse:
        """Make the queue, if it is not there."""
        _checked(queue)
        how = {"durable": durable, "auto_delete": auto_delete, "exclusive": exclusive}

        async def talk(session: Session, call: Call, answer: RabbitMQResponse) -> None:
            answer.topic = queue
            await session.declare(call, answer, queue, **how)

        return await self._on("DECLARE", address, talk, timeout, name or queue)

    async def publish(
        self,
        address: str | URL,
        routing_key: str,
        data: Any,
        *,
        exchange: str = "",
        headers: Mapping[str, Any] | None = None,
        persistent: bool = False,
        mandatory: bool = True,
        timeout: Any = None,
        name: str | None = None,
    ) -> RabbitMQResponse:
        """Send a message, until the server has confirmed it. Without an exchange the routing key is
        the name of a queue; `mandatory`: a message that comes to no queue is a failure."""
        _checked(routing_key)
        _checked(exchange, may_be_empty=True)
        sent = payload_of(data)
        stamped(headers)
        method = self._pool.amqp.Basic.Publish(
            exchange=exchange, routing_key=routing_key, mandatory=bool(mandatory)
        )

        async def talk(session: Session, call: Call, answer: RabbitMQResponse) -> None:
            answer.topic = routing_key
            await session.publish(call, answer, method, sent, stamped(headers), persistent)

        return await self._on("PUBLISH", address, talk, timeout, name or routing_key, sent)

    async def consume(
        self, address: str | URL, queue: str, *, timeout: Any = None, name: str | None = None
    ) -> RabbitMQResponse:
        """The next message of the queue; it is acknowledged."""
        _checked(queue)

        async def talk(session: Session, call: Call, answer: RabbitMQResponse) -> None:
            answer.topic = queue
            if queue not in session.inboxes:
                await session.subscribe(answer, queue)
                if not answer.ok:
                    return
            call.begin()
            consumed("rabbitmq", await session.take(queue), call, answer)

        # What does not come in time may still come: the connection stays.
        return await self._on("CONSUME", address, talk, timeout, name or queue, keeps=True)

    async def _open(self, endpoint: Endpoint, call: Call) -> Session:
        pool, service = self._pool, cast(Service, endpoint)
        sock, call.connect = await pool.network.open(service, pool.tls)
        most = pool.options.max_response_bytes
        session = Session(pool.network, most, service.authority, sock, pool.amqp)
        try:
            user, password = service.user or "guest", service.password or "guest"
            await session.log_in(user, password, service.path or "/")
        except BaseException:
            session.shut()
            raise
        return session


def _checked(name: Any, may_be_empty: bool = False) -> None:
    if not isinstance(name, str) or not (name or may_be_empty):
        raise BadInput(f"{name!r} is not a name of RabbitMQ", "write orders")
    if len(name.encode("utf-8", "replace")) > NAME_BYTES:
        raise BadInput(f"a name of RabbitMQ has at most {NAME_BYTES} bytes")
