"""What clients of databases have in common: connections that users keep or share, transactions.

A virtual user keeps its connections; with `HTTPOptions(connections="shared")` all users of a
process share `max_connections` of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from hyperscale.clients.contract import Call, ProtocolClient, ProtocolPool
from hyperscale.clients.net.failures import Failure
from hyperscale.errors import BadInput, RunFailed
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import SQLResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import Label
from hyperscale.workload.secrets import mask_url
from hyperscale.workload.texts import shown

NAME_MAX = 80
ROWS_SHOWN = 20  # to those who look on
_BLANKS = re.compile(r"\s+")


class Session(Protocol):
    @property
    def is_open(self) -> bool: ...

    def shut(self) -> None: ...

    async def prepared(self, sql: str) -> Any: ...


class Database(Protocol):
    """An address, taken apart once."""

    where: str
    idle: list[Any]

    @property
    def host(self) -> str: ...

    def place(self) -> dict[str, Any]: ...


class Refusal(NamedTuple):
    """What the server has against a statement, and its code for that."""

    error: str
    code: str


D = TypeVar("D", bound=Database)
S = TypeVar("S", bound=Session)
R = TypeVar("R", bound=SQLResponse)
P = TypeVar("P", bound="DatabasePool[Any]")


class DatabasePool(ProtocolPool, Generic[D]):
    server_error: type[Exception]
    """Of the library, where the server refuses a statement."""
    author_error: type[Exception]
    """Of the library, where the author calls it in a wrong way."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tls = self.network.tls()
        self.shares = self.options.connections == "shared"
        self.keeps = self.options.connections != "fresh"
        self._databases: dict[str, D] = {}
        most = self.options.max_connections if self.shares else 0
        self._places = asyncio.Semaphore(most) if most else None

    def parsed(self, text: str) -> D:
        raise NotImplementedError

    async def open(self, database: D, call: Call) -> Any:
        """Raises Failure."""
        raise NotImplementedError

    def refused(self, error: Exception, database: D, told: str) -> Refusal:
        """Raises what is no refusal: Failure where the connection is over, BadInput for a value
        that does not fit."""
        raise NotImplementedError

    def database(self, address: str | URL) -> D:
        text = str(address)
        known = self._databases.get(text)
        if known is None:
            known = self._databases[text] = self.parsed(text)
        return known

    async def prepare(self, url: URL) -> None:
        database = self.database(url)
        if database.host:
            try:
                await self.network.resolver.addresses(database.place()["host"])
            except Failure as failure:
                raise RunFailed(
                    failure.error, f"check the host of {mask_url(str(url))} and this machine's DNS"
                ) from None

    async def take_place(self) -> None:
        """Among the connections that users may share."""
        if self._places is not None:
            await self._places.acquire()

    def free_place(self) -> None:
        if self._places is not None:
            self._places.release()

    async def close(self) -> None:
        await super().close()
        for database in self._databases.values():
            _shut(database.idle)


class Transaction:
    """One connection, from BEGIN to COMMIT or ROLLBACK; calls take it in place of an address."""

    __slots__ = ("database", "has_failed", "held")

    def __init__(self, database: Any) -> None:
        self.database = database
        self.held: list[Any] = []
        self.has_failed = False


Place = str | URL | Transaction


class DatabaseClient(ProtocolClient[P], Generic[P, S, R]):
    response: type[R]

    def __init__(self, pool: P) -> None:
        super().__init__(pool)
        self._idle: dict[Any, list[S]] = {}

    async def _command(self, session: S, sql: str, answer: R) -> None:
        """Run a statement without values."""
        raise NotImplementedError

    async def connect(
        self, address: str | URL, *, timeout: Any = None, name: str | None = None
    ) -> R:
        """Open a connection and log in now; the others do when they must."""

        async def talk(session: S, call: Call, answer: R) -> None:
            call.is_made = True

        where = self._pool.database(address).where
        return await self._run("CONNECT", address, "", talk, timeout, name or where)

    async def prepare(
        self, address: Place, sql: str, *, timeout: Any = None, name: str | None = None
    ) -> R:
        """Prepare the statement now, to measure that by itself; the others do when they must."""

        async def talk(session: S, call: Call, answer: R) -> None:
            call.begin()
            await session.prepared(sql)

        return await self._run("PREPARE", address, sql, talk, timeout, name)

    @asynccontextmanager
    async def transaction(
        self, address: str | URL, *, timeout: Any = None
    ) -> AsyncIterator[Transaction]:
        """`async with ... as tx:`, and `tx` in place of the address. It is rolled back when the
        block raises or a call in it fails, else committed; each of that is a call of its own."""
        pool = self._pool
        transaction = Transaction(pool.database(address))
        await pool.take_place()
        try:
            await self._end(transaction, "begin", timeout)
            ends = "rollback"
            try:
                yield transaction
                ends = "rollback" if transaction.has_failed else "commit"
            finally:
                if transaction.held:
                    await self._end(transaction, ends, timeout)
        finally:
            self._give_back(transaction.database, transaction.held)
            pool.free_place()

    async def _end(self, transaction: Transaction, word: str, timeout: Any) -> None:
        async def talk(session: S, call: Call, answer: R) -> None:
            call.begin()
            await self._command(session, word, answer)

        await self._run("EXECUTE", transaction, word, talk, timeout, None)

    async def _run(
        self,
        method: str,
        address: Place,
        sql: str,
        talk: Callable[[S, Call, R], Awaitable[None]],
        timeout: Any,
        name: str | None,
    ) -> R:
        if type(sql) is not str:
            raise BadInput(f"a statement is {shown(sql)} but must be text")
        if isinstance(address, Transaction):
            held = address.held
            answer = await self._on(held, method, address.database, sql, talk, timeout, name)
            address.has_failed = address.has_failed or not answer.ok
            return answer
        pool = self._pool
        database = pool.database(address)
        held = []
        await pool.take_place()
        try:
            return await self._on(held, method, database, sql, talk, timeout, name)
        finally:
            self._give_back(database, held)
            pool.free_place()

    async def _on(
        self,
        held: list[S],
        method: str,
        database: Any,
        sql: str,
        talk: Callable[[S, Call, R], Awaitable[None]],
        timeout: Any,
        name: str | None,
    ) -> R:
        """A call on the connection that is held, or on one that is held from then on."""
        pool = self._pool

        async def on_session(call: Call, answer: R) -> None:
            if not held:
                held.append(self._kept(database) or await pool.open(database, call))
            try:
                await talk(held[0], call, answer)
            except pool.server_error as error:
                answer.refused(*pool.refused(error, database, told))
            if pool.trace is not None and not answer.content:
                rows = map(repr, answer.rows[:ROWS_SHOWN])
                answer.content = "\n".join((answer.told, *rows)).strip().encode()

        def make(label: Label) -> R:
            made = self.response(label, database.where)
            made.request_bytes = sql.encode("utf-8", "replace")
            return made

        told = name or _BLANKS.sub(" ", sql).strip()[:NAME_MAX]
        try:
            answer = await self.call(method, told, make, on_session, timeout)
        except BadInput:
            raise
        except BaseException as error:
            if not isinstance(error, pool.author_error):
                _shut(held)
                raise
            raise BadInput(f"{told}: {error}") from error
        if not answer.ok and answer.outcome is not Outcome.STATUS:
            _shut(held)
        return answer

    def _kept(self, database: Any) -> S | None:
        idle: list[S] | None = database.idle if self._pool.shares else self._idle.get(database)
        while idle:
            session = idle.pop()
            if session.is_open:
                return session
        return None

    def _give_back(self, database: Any, held: list[S]) -> None:
        pool = self._pool
        for session in held:
            if not session.is_open:
                continue
            if not pool.keeps or pool.stopped:
                session.shut()
            elif pool.shares:
                database.idle.append(session)
            else:
                self._idle.setdefault(database, []).append(session)

    def close(self) -> None:
        for idle in self._idle.values():
            _shut(idle)


def _shut(sessions: list[Any]) -> None:
    while sessions:
        sessions.pop().shut()
