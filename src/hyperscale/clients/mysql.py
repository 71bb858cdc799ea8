"""MySQL and MariaDB by asyncmy: queries, statements and transactions.

A statement with values is prepared on a connection when it first runs there, and executed from then
on. Sockets are ours, except with TLS, which MySQL begins in the middle of its own greeting.
"""

from __future__ import annotations

import asyncio
import ssl
from time import perf_counter
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.net import failures
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.sql import DatabaseClient, DatabasePool, Place, Refusal
from hyperscale.errors import BadInput
from hyperscale.workload.replies import MySQLResponse
from hyperscale.workload.results import Connect, Outcome
from hyperscale.workload.secrets import mask_url

PREPARED_MAX = 200  # statements of a connection: a test may make up others without end
CONNECT_SECONDS_MAX = 31_536_000  # the most that asyncmy takes: the bound is set in `open`
_TLS = {"require": True, "disable": False}
# Of the client itself (2000 to 2999): the connection is over.
_LOST = frozenset({2002, 2003, 2006, 2013, 2055})
_CLIENT = range(2000, 3000)


class Database:
    """An address, taken apart once."""

    __slots__ = ("endpoint", "idle", "name", "password", "secure", "socket", "user", "where")

    def __init__(self, pool: MySQLPool, text: str) -> None:
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise BadInput(f"{mask_url(text)!r} is not an address: {error}") from None
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.socket = query.get("socket", "")
        if parts.scheme not in pool.schemes or not (host or self.socket):
            raise BadInput(
                f"{mask_url(text)!r} is not an address of MySQL",
                "write mysql://user:password@host:3306/database",
            )
        mode = query.get("ssl", "disable")
        if mode not in _TLS:
            raise BadInput(f"ssl is {mode!r} but must be one of {', '.join(_TLS)}")
        self.secure = _TLS[mode]
        self.user = unquote(parts.username or "")
        self.password = unquote(parts.password or "")
        self.name = unquote(parts.path[1:])
        network = pool.network
        name = network.server_name
        self.endpoint = Endpoint(host or "", port or 3306, self.secure, name, network.hosts)
        self.where = self.endpoint.authority if host else self.socket
        self.idle: list[Any] = []  # of all users, where they share

    @property
    def host(self) -> str:
        return "" if self.socket else self.endpoint.host

    def place(self) -> dict[str, Any]:
        host, port = self.endpoint.place
        return {"host": host, "port": port}


class MySQLPool(DatabasePool[Database]):
    kind = "mysql"
    schemes: ClassVar = ("mysql", "mariadb")

    def __init__(self, *args: Any) -> None:
        self.asyncmy = library("asyncmy", "mysql")
        super().__init__(*args)
        errors = library("asyncmy.errors", "mysql")
        self.server_error = errors.MySQLError
        self.author_error = TypeError  # of values that have no form in MySQL

    def parsed(self, text: str) -> Database:
        return Database(self, text)

    def client(self) -> MySQLClient:
        return MySQLClient(self)

    async def open(self, database: Database, call: Call) -> Session:
        seconds = self.options.connect_timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._open(database, call)
        except TimeoutError:
            text = f"connecting to {database.where} took longer than {seconds:g} s"
            raise Failure(Outcome.TIMEOUT, text) from None

    async def _open(self, database: Database, call: Call) -> Session:
        network, where = self.network, database.where
        began = resolved = connected = perf_counter()
        options: dict[str, Any] = {"unix_socket": database.socket} if database.socket else {}
        if not database.socket:
            try:
                addresses = await network.addresses(database.endpoint, where)
                resolved = perf_counter()
                if database.secure:
                    options = {**database.place(), "ssl": self.tls.context(database.host)}
                else:
                    options = {"sock": await network.reach(database.endpoint, addresses)}
            except (OSError, Failure) as error:
                raise failures.of_connecting(error, where) from error
            connected = perf_counter()
        made = self.asyncmy.connection.Connection(
            **options,
            user=database.user,
            password=database.password.encode(),
            database=database.name or None,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS_MAX,
        )
        try:
            await made.connect()
        except BaseException as error:
            made.close()
            raise self._refusal(error, where) from error
        call.connect = Connect(resolved - began, connected - resolved, perf_counter() - connected)
        return Session(made)

    def _refusal(self, error: BaseException, where: str) -> BaseException:
        cause = error.__cause__ or error.__context__
        for one in (error, cause):
            if isinstance(one, ssl.SSLError):
                return failures.of_handshake(one, where)
        if isinstance(cause, OSError) and not isinstance(cause, asyncio.IncompleteReadError):
            return failures.of_connecting(cause, where)
        if isinstance(error, self.server_error):
            code = error.args[0] if error.args else 0
            if code in _LOST:
                return Failure(Outcome.RESET, f"{where} closed the connection: {error}")
            if isinstance(code, int) and code not in _CLIENT:
                return Failure(Outcome.STATUS, f"{where} refused: {_said(error)}")
            if "SSL" in str(error):
                return Failure(Outcome.TLS, f"{where} does not speak TLS; leave out ssl=require")
        if isinstance(error, TimeoutError) or not isinstance(error, Exception):
            return error
        return Failure(Outcome.PROTOCOL, f"{where} does not speak MySQL: {error}")

    def refused(self, error: Exception, database: Database, told: str) -> Refusal:
        code = error.args[0] if error.args else 0
        if not isinstance(code, int):
            raise Failure(Outcome.PROTOCOL, f"{database.where} does not keep to MySQL: {error}")
        if code in _CLIENT or code == 0:
            raise Failure(Outcome.RESET, f"{database.where} closed the connection: {_said(error)}")
        return Refusal(_said(error), str(code))

    def failure(self, error: Exception) -> Failure | None:
        if isinstance(error, OSError | RuntimeError):
            return Failure(Outcome.RESET, f"the connection broke: {error}")
        return super().failure(error)


class Session:
    """A connection and what was prepared on it."""

    __slots__ = ("_statements", "connection")

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._statements: dict[str, Any] = {}

    async def prepared(self, sql: str) -> Any:
        found = self._statements.get(sql)
        if found is None:
            if len(self._statements) >= PREPARED_MAX:
                for old in self._statements.values():
                    await old.close()
                self._statements.clear()
            found = self._statements[sql] = await self.connection.prepare(sql)
        return found

    @property
    def is_open(self) -> bool:
        return bool(self.connection.connected) and not self.connection._stream_broken

    def shut(self) -> None:
        self._statements.clear()
        self.connection.close()


class MySQLClient(DatabaseClient[MySQLPool, Session, MySQLResponse]):
    response = MySQLResponse

    async def query(
        self, address: Place, sql: str, *values: Any, timeout: Any = None, name: str | None = None
    ) -> MySQLResponse:
        """Rows; `?` stands for each of the values."""
        return await self._ask("QUERY", address, sql, values, timeout, name)

    async def execute(
        self, address: Place, sql: str, *values: Any, timeout: Any = None, name: str | None = None
    ) -> MySQLResponse:
        """A statement of which the number of rows matters."""
        return await self._ask("EXECUTE", address, sql, values, timeout, name)

    async def prepare(
        self, address: Place, sql: str, *, timeout: Any = None, name: str | None = None
    ) -> MySQLResponse:
        """Prepare the statement now, to measure that by itself; the others do when they must."""

        async def talk(session: Session, call: Call, answer: MySQLResponse) -> None:
            call.begin()
            await session.prepared(sql)

        return await self._run("PREPARE", address, sql, talk, timeout, name)

    async def _ask(
        self,
        method: str,
        address: Place,
        sql: str,
        values: tuple[Any, ...],
        timeout: Any,
        name: str | None,
    ) -> MySQLResponse:
        async def talk(session: Session, call: Call, answer: MySQLResponse) -> None:
            if not values:
                call.begin()
                await self._command(session, sql, answer)
                return
            statement = await session.prepared(sql)
            if statement.parameter_count != len(values):
                raise BadInput(
                    f"{sql!r} takes {statement.parameter_count} values, not {len(values)}"
                )
            call.begin()
            _take(answer, await statement.execute(values))

        return await self._run(method, address, sql, talk, timeout, name)

    async def _command(self, session: Session, sql: str, answer: MySQLResponse) -> None:
        cursor = session.connection.cursor()
        await cursor.execute(sql)
        _take(answer, cursor._result)


def _take(answer: MySQLResponse, result: Any) -> None:
    answer.rows = list(result.rows or ())
    answer.columns = tuple(column[0] for column in result.description or ())
    answer.row_count = int(result.affected_rows)
    answer.last_id = int(result.insert_id or 0)
    message = result.message
    answer.told = message.decode("utf-8", "replace") if isinstance(message, bytes) else ""


def _said(error: Exception) -> str:
    return " ".join(map(str, error.args))[:1000]
