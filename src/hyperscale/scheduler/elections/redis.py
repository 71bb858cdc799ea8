"""An election by a lock in Redis. Weaker than etcd: a Redis that fails over to a replica may forget
the lock while its holder lives. Two may then think they lead for up to a TTL; the store's fencing
still keeps the older one from writing. For development, or where Redis is all there is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hyperscale.scheduler.elections.contract import ElectionUnavailable, Leader

if TYPE_CHECKING:
    from redis.asyncio import Redis

LOOK_S: Final = 0.25

_ACQUIRE: Final = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local token = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), tonumber(ARGV[1])) + 1
redis.call('SET', KEYS[2], string.format('%d', token))
redis.call('HSET', KEYS[1], 'token', string.format('%d', token), 'who', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return token
"""
_RENEW: Final = """
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""
_RELEASE: Final = """
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""


class RedisLease:
    def __init__(
        self, client: Redis, node: str, address: str, ttl_s: float, prefix: str = "hyperscale"
    ) -> None:
        self._client = client
        self._who = msgspec.json.encode((node, address))
        self._ttl_ms = round(ttl_s * 1000)
        self._lock = f"{{{prefix}-election}}:lock"
        self._counter = f"{{{prefix}-election}}:token"

    async def acquire(self, floor: int) -> int | None:
        token = await self._eval(
            _ACQUIRE, [self._lock, self._counter], floor, self._who, self._ttl_ms
        )
        return token or None

    async def renew(self, token: int) -> bool:
        return bool(await self._eval(_RENEW, [self._lock], token, self._ttl_ms))

    async def release(self, token: int) -> None:
        await self._eval(_RELEASE, [self._lock], token)

    async def vacant(self, timeout_s: float) -> None:
        for _ in range(max(1, round(timeout_s / LOOK_S))):
            if await self.holder() is None:
                return
            await asyncio.sleep(LOOK_S)

    async def holder(self) -> Leader | None:
        from redis.exceptions import RedisError

        try:
            token, who = await self._client.hmget(self._lock, ["token", "who"])
        except (RedisError, OSError) as error:
            raise ElectionUnavailable(f"Redis does not answer: {error}") from error
        if token is None or who is None:
            return None
        node, address = msgspec.json.decode(who, type=tuple[str, str])
        return Leader(node, address, int(token))

    async def close(self) -> None:
        await self._client.aclose()

    async def _eval(self, script: str, keys: list[str], *arguments: object) -> int:
        from redis.exceptions import RedisError

        client: Any = self._client
        try:
            return int(await client.eval(script, len(keys), *keys, *arguments))
        except (RedisError, OSError) as error:
            raise ElectionUnavailable(f"Redis does not answer: {error}") from error
