"""A store by its address, as settings and flags name it. Libraries are imported when asked for."""

from __future__ import annotations

from pathlib import Path

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import plain_address
from hyperscale.scheduler.store.ground import Ground
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import DEFAULT_LIMITS, StoreLimits
from hyperscale.scheduler.telemetry.hook import NO_TELEMETRY, Telemetry

_HINT = (
    "sqlite:FILE, postgres://USER@HOST/DATABASE, memory:, redis://HOST:PORT/DB, rediss://,"
    " unix://PATH or redis+cluster://"
)


async def open_store(
    address: str, limits: StoreLimits = DEFAULT_LIMITS, telemetry: Telemetry = NO_TELEMETRY
) -> Store:
    """Raises BadInput when the address means nothing, or nobody answers there."""
    return Store(await _open_ground(address), limits, telemetry)


async def _open_ground(address: str) -> Ground:
    scheme, colon, rest = address.partition(":")
    if scheme == "memory" and colon:
        from hyperscale.scheduler.store.memory import MemoryGround

        return MemoryGround()
    if scheme == "sqlite" and rest:
        from hyperscale.scheduler.store.sqlite.ground import SqliteGround

        return await SqliteGround.open(Path(rest.removeprefix("//")))
    if scheme in ("redis", "rediss", "unix", "redis+cluster") and rest.startswith("//"):
        try:
            from hyperscale.scheduler.store.redis.ground import RedisGround
        except ModuleNotFoundError as error:
            raise BadInput(
                "the redis store needs its library",
                "pip install 'hyperscale-loadtest[scheduler]', or '.[scheduler]' in a checkout",
            ) from error
        return await RedisGround.open(address)
    if scheme in ("postgres", "postgresql") and rest.startswith("//"):
        try:
            from hyperscale.scheduler.store.postgres.ground import PostgresGround
        except ModuleNotFoundError as error:
            raise BadInput(
                "the postgres store needs its library",
                "pip install 'hyperscale-loadtest[scheduler]', or '.[scheduler]' in a checkout",
            ) from error
        return await PostgresGround.open(address)
    raise BadInput(f"{plain_address(address)!r} is not the address of a job store", _HINT)
