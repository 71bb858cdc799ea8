"""A store by its address, as settings and flags name it. Libraries are imported when asked for."""

from __future__ import annotations

from pathlib import Path

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import plain_address
from hyperscale.scheduler.store.types import DEFAULT_LIMITS, Store, StoreLimits

_HINT = "sqlite:FILE, memory:, redis://HOST:PORT/DB, rediss://, unix://PATH or redis+cluster://"


async def open_store(address: str, limits: StoreLimits = DEFAULT_LIMITS) -> Store:
    """Raises BadInput when the address means nothing, or nobody answers there."""
    scheme, colon, rest = address.partition(":")
    if scheme == "memory" and colon:
        from hyperscale.scheduler.store.memory import MemoryStore

        return MemoryStore(limits)
    if scheme == "sqlite" and rest:
        from hyperscale.scheduler.store.sqlite import SqliteStore

        return await SqliteStore.open(Path(rest.removeprefix("//")), limits)
    if scheme in ("redis", "rediss", "unix", "redis+cluster") and rest.startswith("//"):
        try:
            from hyperscale.scheduler.store.redis import RedisStore
        except ModuleNotFoundError as error:
            raise BadInput(
                "the redis store needs its library",
                "pip install 'hyperscale-loadtest[scheduler]', or '.[scheduler]' in a checkout",
            ) from error
        return await RedisStore.open(address, limits=limits)
    raise BadInput(f"{plain_address(address)!r} is not the address of a job store", _HINT)
