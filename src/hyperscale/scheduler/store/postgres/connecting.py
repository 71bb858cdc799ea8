"""Connections to a PostgreSQL: a few, each used by one caller at a time, thrown away at the first
trouble. The library's own pool asks the server to reset each connection after every use.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import asyncpg

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import plain_address
from hyperscale.scheduler.errors import StoreUnavailable

SCHEMES: Final = ("postgres", "postgresql")
SCHEMA: Final = "hyperscale"
CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0
CONNECTIONS_MAX: Final = 6
"""Of one process: one that commits, some that claim and look."""

Connection = Any
"""asyncpg tells no types."""

AWAY: Final = (
    OSError,  # TimeoutError is one
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.ReadOnlySQLTransactionError,  # it became a standby
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.exceptions.PostgresSystemError,
)
"""What says nothing of the question: the server, the wire or this process's right to ask."""

_SESSION: Final = {
    "application_name": "hyperscale scheduler",
    "search_path": SCHEMA,
    "timezone": "UTC",
    "default_transaction_isolation": "read committed",
    # A process that stands still must not keep what it has locked from all others.
    "idle_in_transaction_session_timeout": "5000",
    "lock_timeout": "5000",
    "statement_timeout": "10000",
    # A machine that vanished says no goodbye: its session, and the lead, end within half a minute.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    # Plans for any value: the one for the first five arguments may be wrong for a table that grew.
    "jit": "off",
}
_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
"""An acknowledged job is on disk, whatever the database's owner prefers for other tables."""


@contextmanager
def answers() -> Iterator[None]:
    """Raises StoreUnavailable for whatever kept the database from answering."""
    try:
        yield
    except AWAY as error:
        why = str(error) or f"{ANSWER_S:g} s passed"
        raise StoreUnavailable(f"postgres did not answer: {why}") from error


async def connect(url: str) -> Connection:
    """Raises BadInput for an address that cannot be read, else as `asyncpg.connect`."""
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_S, server_settings=_SESSION)
    except (ValueError, asyncpg.ClientConfigurationError):
        # Its text may hold a piece of the password.
        raise BadInput(
            f"{plain_address(url)!r} is not the address of a postgres",
            "postgres://USER:PASSWORD@HOST:PORT/DATABASE; a / in the password is written %2F",
        ) from None
    await connection.execute(_DURABLE)
    return connection


class Connections:
    def __init__(self, url: str) -> None:
        self._url = url
        self._free = asyncio.Semaphore(CONNECTIONS_MAX)
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """Raises StoreUnavailable, also for what is asked of the connection."""
        with answers():
            async with asyncio.timeout(ANSWER_S), self._free:
                connection = await self._taken()
                try:
                    yield connection
                except BaseException:
                    connection.terminate()
                    raise
                finally:
                    self._used.discard(connection)
                self._idle.append(connection)

    async def _taken(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                break
        else:
            connection = await connect(self._url)
        self._used.add(connection)
        return connection

    def close(self) -> None:
        for connection in (*self._idle, *self._used):
            connection.terminate()
        self._idle.clear()
