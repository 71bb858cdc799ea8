"""An election by a lock in Redis. Weaker than etcd: a Redis that fails over to a replica may forget
the lock while its holder lives. Two may then think they lead for up to a TTL; the store's fencing
still keeps the older one from writing. For development, or where Redis is all there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import msgspec
from redis.exceptions import RedisError

from hyperscale.scheduler.leader.election import ElectionUnavailable, Leader
from hyperscale.scheduler.store.redis.connecting import ANSWER_S, connect_one

T = TypeVar("T")

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
        self, url: str, node: str, address: str, ttl_s: float, prefix: str = "hyperscale"
    ) -> None:
        self._client = connect_one(url)
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
        token, who = await self._answer(self._client.hmget(self._lock, ["token", "who"]))
        if token is None or who is None:
            return None
        node, address = msgspec.json.decode(who, type=tuple[str, str])
        return Leader(node, address, int(token))

    async def close(self) -> None:
        await self._client.aclose()

    async def _eval(self, script: str, keys: list[str], *arguments: object) -> int:
        client: Any = self._client
        return int(await self._answer(client.eval(script, len(keys), *keys, *arguments)))

    async def _answer(self, asked: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await asked
        except (RedisError, OSError) as error:
            why = str(error) or f"{ANSWER_S:g} s passed"
            raise ElectionUnavailable(f"Redis does not answer: {why}") from error
