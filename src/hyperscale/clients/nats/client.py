"""NATS: publish, to a stream of JetStream as well, request, subscribe, consume the next message.

The protocol is a page of text lines, and ours: nats-py keeps three tasks for a connection and does
not tell which of its commands a server refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, ClassVar, cast

import msgspec

from hyperscale.clients.contract import Call
from hyperscale.clients.io import opening
from hyperscale.clients.messages import consumed, stamped
from hyperscale.clients.nats.session import Session, greeted
from hyperscale.clients.net import failures
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.payload import payload_of
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import NATSResponse
from hyperscale.workload.results import Connect, Outcome


class NATSPool(AddressPool):
    kind = "nats"
    schemes: ClassVar = {"nats": False, "natss": True}
    ports: ClassVar = {"nats": (False, 4222), "natss": (True, 4222)}

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.addresses = Services(self.network, self.ports)

    def client(self) -> NATSClient:
        return NATSClient(self)


class NATSClient(AddressClient[NATSPool, Session, NATSResponse]):
    response = NATSResponse

    async def publish(
        self,
        address: str | URL,
        subject: str,
        data: Any,
        *,
        headers: Mapping[str, Any] | None = None,
        jetstream: bool = False,
        timeout: Any = None,
        name: str | None = None,
    ) -> NATSResponse:
        """Send a message, until the server has it; with `jetstream`, until a stream has stored
        it."""
        sent = _checked(subject, headers, data)

        async def talk(session: Session, call: Call, answer: NATSResponse) -> None:
            answer.topic = subject
            if _fits(session, sent, answer):
                call.begin()
                if jetstream:
                    reply = await session.request(call, answer, subject, stamped(headers), sent)
                    if reply is not None:
                        _stored(reply.data, answer)
                else:
                    await session.publish(call, answer, subject, "", stamped(headers), sent)

        return await self._on("PUBLISH", address, talk, timeout, name or subject, sent)

    async def request(
        self,
        address: str | URL,
        subject: str,
        data: Any,
        *,
        headers: Mapping[str, Any] | None = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> NATSResponse:
        """Send a message and wait for the reply of the service at that subject."""
        sent = _checked(subject, headers, data)

        async def talk(session: Session, call: Call, answer: NATSResponse) -> None:
            answer.topic = subject
            if _fits(session, sent, answer):
                call.begin()
                reply = await session.request(call, answer, subject, stamped(headers), sent)
                if reply is not None:
                    answer.content, answer.headers = reply.data, reply.headers

        return await self._on("REQUEST", address, talk, timeout, name or subject, sent)

    async def subscribe(
        self,
        address: str | URL,
        subject: str,
        *,
        queue: str = "",
        timeout: Any = None,
        name: str | None = None,
    ) -> NATSResponse:
        """From now on the server sends what is published there; `consume` gives it out. Those with
        the same `queue` share the messages."""
        _subject(subject, is_pattern=True)
        _word(queue)

        async def talk(session: Session, call: Call, answer: NATSResponse) -> None:
            answer.topic = subject
            call.begin()
            if f"{subject} {queue}" not in session.inboxes:
                await session.subscribe(call, answer, subject, queue)

        return await self._on("SUBSCRIBE", address, talk, timeout, name or subject)

    async def consume(
        self,
        address: str | URL,
        subject: str,
        *,
        queue: str = "",
        timeout: Any = None,
        name: str | None = None,
    ) -> NATSResponse:
        """The next message of a subscription, which is made if it is not there yet."""
        _subject(subject, is_pattern=True)
        _word(queue)

        async def talk(session: Session, call: Call, answer: NATSResponse) -> None:
            answer.topic = subject
            if f"{subject} {queue}" not in session.inboxes:
                await session.subscribe(call, answer, subject, queue)
                if not answer.ok:
                    return
            call.begin()
            message = await session.inboxes.take(f"{subject} {queue}")
            consumed("nats", message, call, answer)
            answer.reply_to = message.more

        # What does not come in time may still come: the connection stays.
        return await self._on("CONSUME", address, talk, timeout, name or subject, keeps=True)

    async def _open(self, endpoint: Endpoint, call: Call) -> Session:
        pool, service = self._pool, cast(Service, endpoint)
        network, where = pool.network, service.authority
        began = perf_counter()
        try:
            addresses = await network.addresses(service, where)
            resolved = perf_counter()
            sock = await network.reach(service, addresses)
        except (OSError, Failure) as error:
            raise failures.of_connecting(error, network.unix_socket or where) from error
        connected = secured = perf_counter()
        try:
            info = await greeted(network, where, sock)
            # TLS begins behind the server's first line, also where only the server asks for it.
            if service.secure or info.get("tls_required"):
                if not (info.get("tls_required") or info.get("tls_available")):
                    raise Failure(Outcome.TLS, f"{where} does not speak TLS; write nats://")
                connected = perf_counter()
                context = pool.tls.context(service.host)
                sock = await opening.secure(network.readiness, sock, context, service.server_name)
                secured = perf_counter()
        except OSError as error:
            raise failures.of_securing(error, where) from error
        except BaseException:
            sock.close()
            raise
        call.connect = Connect(resolved - began, connected - resolved, secured - connected)
        session = Session(network, pool.options.max_response_bytes, where, sock, info)
        try:
            await session.log_in(_options(service))
        except BaseException:
            session.shut()
            raise
        return session


def _options(service: Service) -> dict[str, Any]:
    login = {}
    if service.user:
        by_name = {"user": service.user, "pass": service.password}
        login = by_name if service.password else {"auth_token": service.user}
    return {
        "verbose": False,
        "pedantic": False,
        "lang": "hyperscale",
        "version": "1",
        "protocol": 1,
        "headers": True,
        "no_responders": True,
        "tls_required": service.secure,
        **login,
    }


def _checked(subject: Any, headers: Any, data: Any) -> bytes:
    _subject(subject)
    for name, value in stamped(headers).items():
        if not name or any(one in name for one in ":\r\n ") or any(one in value for one in "\r\n"):
            raise BadInput(f"{name!r}: {value!r} is not a header of NATS")
    return payload_of(data)


def _subject(subject: Any, is_pattern: bool = False) -> None:
    if not isinstance(subject, str) or not all(subject.split(".")):
        raise BadInput(f"{subject!r} is not a subject of NATS", "write shop.orders")
    _word(subject)
    if not is_pattern and any(word in ("*", ">") for word in subject.split(".")):
        raise BadInput(f"{subject!r} has a wildcard, which is for subscriptions")


def _word(text: Any) -> None:
    if not isinstance(text, str) or any(one.isspace() for one in text) or "\0" in text:
        raise BadInput(f"{text!r} is not one word")


def _fits(session: Session, data: bytes, answer: NATSResponse) -> bool:
    if len(data) > session.limit:
        told = f"the message has {len(data)} bytes and the server takes {session.limit}"
        answer.refused(told, "Maximum Payload Violation")
    return answer.ok


def _stored(data: bytes, answer: NATSResponse) -> None:
    """What JetStream says of a message."""
    answer.content = data
    try:
        said = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        said = {}
    error = said.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        answer.status = code if isinstance(code, int) else 0
        answer.refused(str(error.get("description", error)), str(error.get("err_code", "")))
    elif "stream" not in said:
        answer.outcome = Outcome.PROTOCOL
        answer.error = f"{answer.topic} was answered by something that is not JetStream"
    else:
        answer.stream, answer.sequence = str(said["stream"]), int(said.get("seq") or 0)
