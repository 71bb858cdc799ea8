"""PostgreSQL by asyncpg: queries, statements, transactions and COPY.

A statement with its arguments is prepared on a connection when it first runs there, and executed
from then on. A virtual user keeps its connections; with `HTTPOptions(connections="shared")` all
users of a process share `max_connections` of them. The sockets are asyncpg's: what went over them
in bytes it does not tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.net import failures
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.sql import DatabaseClient, DatabasePool, Place, Refusal
from hyperscale.errors import BadInput
from hyperscale.workload.replies import PostgresResponse
from hyperscale.workload.results import Connect, Outcome
from hyperscale.workload.secrets import mask_url

PREPARED_MAX = 200  # statements of a connection: a test may make up others without end
_SCHEMES = ("postgres", "postgresql")
_TLS = {"require": True, "verify-ca": True, "verify-full": True, "disable": False}
# Of SQLSTATE: the connection itself is over.
_GONE = ("08", "57P")


class Database:
    """An address, taken apart once."""

    __slots__ = ("_endpoint", "dsn", "idle", "secure", "where")

    def __init__(self, pool: PostgresPool, text: str) -> None:
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise BadInput(f"{mask_url(text)!r} is not an address: {error}") from None
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.scheme not in _SCHEMES or not (host or query.get("host")):
            raise BadInput(
                f"{mask_url(text)!r} is not an address of PostgreSQL",
                "write postgresql://user:password@host:5432/database",
            )
        mode = query.pop("sslmode", "disable")
        if mode not in _TLS:
            raise BadInput(f"sslmode is {mode!r} but must be one of {', '.join(_TLS)}")
        self.secure = _TLS[mode]
        self._endpoint: Endpoint | None = None
        self.where = query.get("host", "")
        if host:
            network = pool.network
            endpoint = Endpoint(host, port or 5432, self.secure, None, network.hosts)
            self._endpoint = endpoint
            self.where = endpoint.authority
        self.dsn = urlunsplit(parts._replace(query=urlencode(query)))
        self.idle: list[Any] = []  # of all users, where they share

    @property
    def host(self) -> str:
        return self._endpoint.host if self._endpoint else ""

    def place(self) -> dict[str, Any]:
        """Where `hosts` of the options say that it is."""
        if self._endpoint is None:
            return {}
        host, port = self._endpoint.place
        return {"host": host, "port": port}


class PostgresPool(DatabasePool[Database]):
    kind = "postgres"

    def __init__(self, *args: Any) -> None:
        self.asyncpg = library("asyncpg", "postgres")
        super().__init__(*args)
        self.server_error = self.asyncpg.PostgresError
        self.author_error = self.asyncpg.InterfaceError

    def parsed(self, text: str) -> Database:
        return Database(self, text)

    def client(self) -> PostgresClient:
        return PostgresClient(self)

    async def open(self, database: Database, call: Call) -> Session:
        """Raises Failure."""
        seconds = self.options.connect_timeout
        began = perf_counter()
        tls = self.tls.context(database.host) if database.secure else False
        try:
            async with asyncio.timeout(seconds):
                made = await self.asyncpg.connect(
                    database.dsn, **database.place(), ssl=tls, timeout=None
                )
        except TimeoutError:
            text = f"connecting to {database.where} took longer than {seconds:g} s"
            raise Failure(Outcome.TIMEOUT, text) from None
        except ConnectionError as error:
            if "SSL" in str(error):
                text = f"{database.where} does not speak TLS; leave out sslmode"
                raise Failure(Outcome.TLS, text) from error
            raise failures.of_connecting(error, database.where) from error
        except OSError as error:
            raise failures.of_connecting(error, database.where) from error
        except self.asyncpg.PostgresError as error:
            raise _gone(error, database) or Failure(
                Outcome.STATUS, f"{error.sqlstate} {error}"
            ) from error
        except (self.asyncpg.InterfaceError, self.asyncpg.InternalClientError) as error:
            text = f"{database.where} does not speak PostgreSQL: {error}"
            raise Failure(Outcome.PROTOCOL, text) from error
        call.connect = Connect(0.0, perf_counter() - began, 0.0)
        return Session(made)

    def failure(self, error: Exception) -> Failure | None:
        asyncpg = self.asyncpg
        if isinstance(error, asyncpg.InternalClientError):
            return Failure(Outcome.PROTOCOL, f"the server sent what asyncpg refuses: {error}")
        if isinstance(error, OSError):
            return Failure(Outcome.RESET, f"the connection broke: {error}")
        return super().failure(error)

    def refused(self, error: Exception, database: Database, told: str) -> Refusal:
        gone = _gone(error, database)
        if gone is not None:
            raise gone from error
        if getattr(error, "severity", None) is None:  # asyncpg's own, of a value
            raise BadInput(f"{told}: {error}") from error
        state: str = error.sqlstate  # type: ignore[attr-defined]
        return Refusal(f"{state} {error}", state)


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
                self._statements.clear()
            found = self._statements[sql] = await self.connection.prepare(sql)
        return found

    @property
    def is_open(self) -> bool:
        return not self.connection.is_closed()

    def shut(self) -> None:
        self._statements.clear()
        self.connection.terminate()


class PostgresClient(DatabaseClient[PostgresPool, Session, PostgresResponse]):
    response = PostgresResponse

    async def query(
        self, address: Place, sql: str, *values: Any, timeout: Any = None, name: str | None = None
    ) -> PostgresResponse:
        """Rows; `$1` stands for the first of the values."""

        async def talk(session: Session, call: Call, answer: PostgresResponse) -> None:
            statement = await session.prepared(sql)
            call.begin()
            answer.rows = rows = await statement.fetch(*values)
            answer.row_count = len(rows)

        return await self._run("QUERY", address, sql, talk, timeout, name)

    async def execute(
        self, address: Place, sql: str, *values: Any, timeout: Any = None, name: str | None = None
    ) -> PostgresResponse:
        """A statement of which the number of rows matters; without values it may be several."""

        async def talk(session: Session, call: Call, answer: PostgresResponse) -> None:
            if values:
                statement = await session.prepared(sql)
                call.begin()
                await statement.fetch(*values)
                answer.tell(statement.get_statusmsg())
            else:
                call.begin()
                answer.tell(await session.connection.execute(sql))

        return await self._run("EXECUTE", address, sql, talk, timeout, name)

    async def prepare(
        self, address: Place, sql: str, *, timeout: Any = None, name: str | None = None
    ) -> PostgresResponse:
        """Prepare the statement now, to measure that by itself; the others do when they must."""

        async def talk(session: Session, call: Call, answer: PostgresResponse) -> None:
            call.begin()
            await session.prepared(sql)

        return await self._run("PREPARE", address, sql, talk, timeout, name)

    async def copy_in(
        self,
        address: Place,
        table: str,
        rows: Iterable[Iterable[Any]],
        *,
        columns: Iterable[str] | None = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> PostgresResponse:
        """COPY the rows into the table."""
        named = list(columns) if columns is not None else None

        async def talk(session: Session, call: Call, answer: PostgresResponse) -> None:
            copy = session.connection.copy_records_to_table
            call.begin()
            answer.tell(await copy(table, records=rows, columns=named))

        return await self._run("COPY", address, f"copy {table} from stdin", talk, timeout, name)

    async def copy_out(
        self, address: Place, sql: str, *values: Any, timeout: Any = None, name: str | None = None
    ) -> PostgresResponse:
        """COPY what the query gives; the data of the response is what PostgreSQL writes."""
        most = self._pool.options.max_response_bytes

        async def talk(session: Session, call: Call, answer: PostgresResponse) -> None:
            data = bytearray()

            async def take(part: bytes) -> None:
                data.extend(part)
                if len(data) > most:
                    raise Failure(Outcome.PROTOCOL, f"the copy has more than {most} bytes")

            call.begin()
            answer.tell(await session.connection.copy_from_query(sql, *values, output=take))
            answer.content = bytes(data)
            call.got(len(data), call.started, perf_counter())

        return await self._run("COPY", address, f"copy ({sql}) to stdout", talk, timeout, name)

    async def _command(self, session: Session, sql: str, answer: PostgresResponse) -> None:
        answer.tell(await session.connection.execute(sql))


def _gone(error: Any, database: Database) -> Failure | None:
    if (error.sqlstate or "").startswith(_GONE):
        return Failure(Outcome.RESET, f"{database.where} ended the connection: {error}")
    return None
