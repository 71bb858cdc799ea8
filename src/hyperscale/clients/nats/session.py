"""A connection to a server of NATS.

Behind each command goes a PING. Its PONG says that the server has taken the command, and an error
that comes before that PONG is about this command.
"""

from __future__ import annotations

import socket
from collections import deque
from os import urandom
from typing import Any

from hyperscale.clients.contract import Call
from hyperscale.clients.io import opening
from hyperscale.clients.messages import BrokerChannel, arrived
from hyperscale.clients.nats import protocol
from hyperscale.clients.nats.protocol import Delivered, Line, LineReader, ProtocolError
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.workload.replies import NATSResponse
from hyperscale.workload.results import Outcome

NO_RESPONDERS = 503
LOGIN = 0  # the key of the first command
REPLIES = 0  # the number of the subscription that all replies come to
_PERMISSIONS = "permissions violation"


async def greeted(network: Network, where: str, sock: socket.socket) -> dict[str, Any]:
    """What the server says of itself before anybody has said anything. Raises Failure."""
    data = b""
    while True:
        try:
            more = await opening.receive(network.readiness, sock)
        except OSError as error:
            raise Failure(Outcome.RESET, f"{where} reset the connection") from error
        if not more:
            raise Failure(Outcome.RESET, f"{where} closed the connection")
        data += more
        try:
            for line in LineReader(protocol.LINE_MAX).feed(data):
                return protocol.info(Line("MSG", "") if isinstance(line, Delivered) else line)
        except ProtocolError as error:
            raise _other(where, error) from error
        if not b"INFO ".startswith(data[:5]):
            raise _other(where, ProtocolError(f"{data[:20]!r} in place of its INFO"))


def _other(where: str, error: ProtocolError) -> Failure:
    return Failure(Outcome.PROTOCOL, f"{where} does not speak NATS: it sent {error}")


class Session(BrokerChannel):
    """`_sent` are the keys of commands whose PONG has not come."""

    __slots__ = ("_last", "_reader", "_sent", "_subjects", "inbox", "limit")

    def __init__(
        self, network: Network, most: int, where: str, sock: socket.socket, info: dict[str, Any]
    ) -> None:
        limit = info.get("max_payload")
        self.limit = limit if isinstance(limit, int) else most
        self.inbox = f"_INBOX.{urandom(8).hex()}"
        self._reader = LineReader(most)
        self._last = 0
        self._sent: deque[int] = deque()
        self._subjects: dict[int, str] = {}
        self.begin_broker(network, most, where, sock)

    async def log_in(self, options: dict[str, Any]) -> None:
        """Raises Failure."""
        waiting = self.wait_for(LOGIN)
        self._sent.append(LOGIN)
        self.control(protocol.connect(**options) + protocol.PING)
        error, _, _ = await waiting
        if error:
            raise Failure(Outcome.STATUS, f"{self.where} refused the connection: {error}")

    async def publish(self, call: Call, answer: NATSResponse, *message: Any) -> None:
        await self._taken(call, answer, self._next(), protocol.publish(*message))

    async def subscribe(self, call: Call, answer: NATSResponse, subject: str, group: str) -> None:
        key = self._next()
        name = f"{subject} {group}"
        self.inboxes.open(name)
        self._subjects[key] = name
        try:
            await self._taken(call, answer, key, protocol.subscribe(subject, group, key))
        except BaseException:
            self._forget(key)
            raise
        if not answer.ok:
            self._forget(key)

    def _forget(self, key: int) -> None:
        self.inboxes.forget(self._subjects.pop(key))

    async def request(
        self, call: Call, answer: NATSResponse, subject: str, *message: Any
    ) -> Delivered | None:
        """The reply; None: the answer says why there is none."""
        if REPLIES not in self._subjects:
            self._subjects[REPLIES] = ""
            self.control(protocol.subscribe(f"{self.inbox}.*", "", REPLIES))
        key = self._next()
        asked = protocol.publish(subject, f"{self.inbox}.{key}", *message)
        reply = self.wait_for(f"{self.inbox}.{key}")
        try:
            await self._put(call, key, asked)
            came = await reply
        finally:
            self.pending.pop(f"{self.inbox}.{key}", None)
        if isinstance(came, str):
            answer.refused(came, _code(came))
            return None
        delivered, at = came
        call.got(delivered.size, at, at)
        answer.status = delivered.status
        if delivered.status == NO_RESPONDERS:
            answer.refused(f"no responders at {subject}", "no responders")
            return None
        return delivered  # type: ignore[no-any-return]

    async def _taken(self, call: Call, answer: NATSResponse, key: int, command: bytes) -> None:
        waiting = self.wait_for(key)
        try:
            await self._put(call, key, command)
            error, size, at = await waiting
        finally:
            self.pending.pop(key, None)
        call.got(size, at, at)
        if error:
            answer.refused(error, _code(error))

    async def _put(self, call: Call, key: int, command: bytes) -> None:
        while self.unsent is not None:  # the order of PONGs is that of writing
            await self.change()
        if self.end is not None:
            raise self.end
        self._sent.append(key)
        await self.put(call, command + protocol.PING)

    def _next(self) -> int:
        self._last += 1
        return self._last

    def received(self, data: bytes, now: float) -> None:
        try:
            for came in self._reader.feed(data):
                if isinstance(came, Delivered):
                    self._message(came, now)
                else:
                    self._line(came, now)
                if self.end is not None:
                    return
        except ProtocolError as error:
            self.end = self.end or _other(self.where, error)
            self.over(Outcome.PROTOCOL, "")

    def _line(self, line: Line, now: float) -> None:
        match line.verb:
            case "PING":
                self.control(protocol.PONG)
            case "PONG":
                if not self._sent:
                    raise ProtocolError("a PONG that nobody asked for")
                self.answered(self._sent.popleft(), ("", len(protocol.PONG), now))
            case "-ERR":
                self._refused(line.words.strip().strip("'"), now)
            case "+OK" | "INFO":
                pass
            case _:
                raise ProtocolError(f"{f'{line.verb} {line.words}'[:60]!r}")

    def _refused(self, error: str, now: float) -> None:
        if error.lower().startswith(_PERMISSIONS) and self._sent:
            key = self._sent[0]
            self.answered(key, (error, len(error), now))
            self.answered(f"{self.inbox}.{key}", error)
        elif LOGIN in self.pending:
            self.answered(LOGIN, (error, len(error), now))
        else:
            self.over(Outcome.STATUS, f"ended the connection: {error}")

    def _message(self, came: Delivered, now: float) -> None:
        if came.subscription == REPLIES:
            self.answered(came.subject, (came, now))
            return
        name = self._subjects.get(came.subscription)
        if name is not None:
            self.deliver(
                name, arrived(came.subject, came.data, came.headers, now, came.size, came.reply)
            )


def _code(error: str) -> str:
    return error.partition(" for ")[0]
