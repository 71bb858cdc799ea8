"""Redis: commands as methods, pipelines and transactions, on connections of our own.

hiredis packs commands and reads replies. Calls of a user that are made at the same time share its
connection: their replies come in the order of their commands.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NoReturn, cast

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.payload import payload_of
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.clients.waiting import WaitingChannel
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL, OptimizedArgument
from hyperscale.workload.replies import RedisResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.texts import shown

Command = Sequence[Any]
"""Its words: `("SET", "key", 1)`."""

_NOT_YET = object()
_PLAIN = (str, bytes, int, float)
# After these a server says what nobody asked for.
_REFUSED = frozenset({"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC", "PSYNC", "QUIT"})


class RedisPool(AddressPool):
    kind = "redis"
    schemes: ClassVar = {"redis": False, "rediss": True}
    ports: ClassVar = {"redis": (False, 6379), "rediss": (True, 6379)}

    def __init__(self, *args: Any) -> None:
        self.hiredis = library("hiredis", "redis")
        super().__init__(*args)
        self.addresses = Services(self.network, self.ports)
        self.is_error = self.hiredis.ReplyError

    def packed(self, words: Command) -> bytes:
        """Raises BadInput."""
        try:
            return cast(bytes, self.hiredis.pack_command(words))
        except TypeError:
            pass
        if not isinstance(words, list | tuple) or not words:
            raise BadInput(f"{shown(words)} is not a command", 'write its words: ("SET", "key", 1)')
        plain = [payload_of(one) if isinstance(one, OptimizedArgument) else one for one in words]
        for one in plain:
            if type(one) not in _PLAIN:
                raise BadInput(f"{shown(one)} of {words[0]} is not text, bytes or a number")
        return cast(bytes, self.hiredis.pack_command(tuple(plain)))

    def client(self) -> RedisClient:
        return RedisClient(self)


class RedisClient(AddressClient[RedisPool, "Connection", RedisResponse]):
    """Every command is a method: `get(address, key)`, `config_get(address, "maxmemory")`."""

    response = RedisResponse

    def __getattr__(self, name: str) -> Callable[..., Awaitable[RedisResponse]]:
        if name.startswith("_"):
            raise AttributeError(name)
        words = name.upper().split("_")
        method = partial(self._command, " ".join(words), tuple(words))
        setattr(self, name, method)
        return method

    async def command(
        self, address: str | URL, *words: Any, timeout: Any = None, name: str | None = None
    ) -> RedisResponse:
        """Any command, also one whose words are known only then."""
        if not words:
            raise BadInput("a command has no words", 'write command(address, "GET", "key")')
        return await self._command(
            str(words[0]).upper(), (), address, *words, timeout=timeout, name=name
        )

    async def _command(
        self,
        method: str,
        words: tuple[str, ...],
        address: str | URL,
        *given: Any,
        timeout: Any = None,
        name: str | None = None,
    ) -> RedisResponse:
        if method in _REFUSED:
            _refuse(method)
        pool = self._pool
        packed = pool.packed(words + given)

        async def talk(connection: Connection, call: Call, answer: RedisResponse) -> None:
            (reply,) = await connection.exchange(call, packed, 1)
            answer.value = reply
            if isinstance(reply, pool.is_error):
                answer.refused(str(reply))

        return await self._on(method, address, talk, timeout, name, packed)

    async def pipeline(
        self, address: str | URL, *commands: Command, timeout: Any = None, name: str | None = None
    ) -> RedisResponse:
        """All of them at once; the value is the list of their replies."""
        pool = self._pool
        packed = b"".join(map(pool.packed, _checked(commands)))

        async def talk(connection: Connection, call: Call, answer: RedisResponse) -> None:
            answer.value = await connection.exchange(call, packed, len(commands))
            _first_error(pool, answer, answer.value)

        return await self._on("PIPELINE", address, talk, timeout, name, packed)

    async def transaction(
        self, address: str | URL, *commands: Command, timeout: Any = None, name: str | None = None
    ) -> RedisResponse:
        """All of them or none, between MULTI and EXEC; the value is the list of their replies."""
        pool = self._pool
        words = [("MULTI",), *_checked(commands), ("EXEC",)]
        packed = b"".join(map(pool.packed, words))

        async def talk(connection: Connection, call: Call, answer: RedisResponse) -> None:
            *queued, results = await connection.exchange(call, packed, len(words))
            answer.value = results
            if results is None:
                answer.refused("EXEC was aborted: a key that is watched has changed")
            else:
                _first_error(pool, answer, queued)
                _first_error(pool, answer, results if isinstance(results, list) else [results])

        return await self._on("TRANSACTION", address, talk, timeout, name, packed)

    async def _on(self, method: str, address: str | URL, talk: Any, *rest: Any) -> RedisResponse:
        if self._pool.trace is None:
            return await super()._on(method, address, talk, *rest)

        async def shown_too(connection: Connection, call: Call, answer: RedisResponse) -> None:
            await talk(connection, call, answer)
            answer.show()

        return await super()._on(method, address, shown_too, *rest)

    async def _open(self, endpoint: Endpoint, call: Call) -> Connection:
        pool = self._pool
        service = cast(Service, endpoint)
        greeting: list[Command] = []
        if service.password:
            user = (service.user,) if service.user else ()
            greeting.append(("AUTH", *user, service.password))
        if service.path:
            if not service.path.isdecimal():
                raise BadInput(f"{service.path!r} is no database of Redis, which has numbers")
            greeting.append(("SELECT", service.path))
        sock, call.connect = await pool.network.open(service, pool.tls)
        connection = Connection(pool, service.authority, sock)
        try:
            for words in greeting:
                (reply,) = await connection.ask(pool.packed(words), 1)
                if isinstance(reply, pool.is_error):
                    raise Failure(
                        Outcome.STATUS, f"{service.authority} refused {words[0]}: {reply}"
                    )
        except BaseException:
            connection.shut()
            raise
        return connection


def _refuse(method: str) -> NoReturn:
    raise BadInput(f"{method} changes what its connection answers, which no call can do")


def _checked(commands: Sequence[Command]) -> Sequence[Command]:
    if not commands:
        raise BadInput("there are no commands", 'write (("SET", "key", 1), ("GET", "key"))')
    for words in commands:
        if isinstance(words, list | tuple) and words and str(words[0]).upper() in _REFUSED:
            _refuse(str(words[0]).upper())
    return commands


def _first_error(pool: RedisPool, answer: RedisResponse, replies: list[Any]) -> None:
    error = next((one for one in replies if isinstance(one, pool.is_error)), None)
    if error is not None and answer.ok:
        answer.refused(str(error))


class _Waiting:
    """A call whose replies have not all come."""

    __slots__ = ("done", "first_at", "last_at", "missing", "replies", "size")

    def __init__(self, done: asyncio.Future[None], missing: int) -> None:
        self.done = done
        self.missing = missing
        self.replies: list[Any] = []
        self.size = 0
        self.first_at = self.last_at = 0.0


class Connection(WaitingChannel):
    __slots__ = ("_feed", "_gets", "_most", "_pending", "_protocol_error")

    def __init__(self, pool: RedisPool, where: str, sock: socket.socket) -> None:
        reader = pool.hiredis.Reader(notEnoughData=_NOT_YET)
        self._feed, self._gets = reader.feed, reader.gets
        self._protocol_error = pool.hiredis.HiredisError
        self._most = pool.options.max_response_bytes
        self._pending: deque[_Waiting] = deque()
        self.begin(pool.network, where, sock)

    def received(self, data: bytes, now: float) -> None:
        pending = self._pending
        if not pending:
            self.over(Outcome.PROTOCOL, f"sent what nobody asked for: {data[:40]!r}")
            return
        first = pending[0]
        if not first.size:
            first.first_at = now
        first.size += len(data)
        self._feed(data)
        try:
            while (reply := self._gets()) is not _NOT_YET:
                if not pending:
                    self.over(Outcome.PROTOCOL, "sent more replies than it had commands")
                    return
                first = pending[0]
                first.replies.append(reply)
                first.missing -= 1
                if not first.missing:
                    pending.popleft()
                    first.first_at = first.first_at or now
                    first.last_at = now
                    if not first.done.done():
                        first.done.set_result(None)
        except self._protocol_error as error:
            self.over(Outcome.PROTOCOL, f"sent something that is not Redis: {error}")
            return
        if pending and pending[0].size > self._most:
            self.over(Outcome.PROTOCOL, f"sent a reply of more than {self._most} bytes")

    async def exchange(self, call: Call, packed: bytes, count: int) -> list[Any]:
        call.begin()
        while self.unsent is not None:  # of another call
            await self.change()
        waiting = self._wait_for(count)
        await self.transmit(call, packed)
        await waiting.done
        call.got(waiting.size, waiting.first_at, waiting.last_at)
        return waiting.replies

    async def ask(self, packed: bytes, count: int) -> list[Any]:
        """Before the first call."""
        waiting = self._wait_for(count)
        self.write(packed)
        await waiting.done
        return waiting.replies

    def _wait_for(self, count: int) -> _Waiting:
        if self.end is not None:
            raise self.end
        waiting = _Waiting(self._loop.create_future(), count)
        self._pending.append(waiting)
        return waiting

    def shut(self) -> None:
        super().shut()
        pending, self._pending = self._pending, deque()
        if pending:
            end = self.end or Failure(
                Outcome.RESET,
                f"the connection to {self.where} was closed: another call on it failed",
            )
            for waiting in pending:
                if not waiting.done.done():
                    waiting.done.set_exception(end)
