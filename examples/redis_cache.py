"""Redis: a shop's cache, with a pipeline and a transaction.

redis-server &
hyperscale run examples/redis_cache.py    # REDIS=redis://:password@cache.example:6379/0 for another
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, RedisResponse

REDIS = os.environ.get("REDIS", "redis://127.0.0.1:6379")


class Cache(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["redis_req_duration: p(95)<100ms", "redis_req_failed: rate<1%"]

    @step()
    async def fill(self, cache: URL = REDIS) -> RedisResponse:
        item = f"item:{self.random.randrange(1000)}"
        return await self.client.redis.pipeline(
            cache, ("SET", item, "a lamp"), ("EXPIRE", item, 60), name="fill"
        )

    @step("fill")
    async def look(self, cache: URL = REDIS) -> RedisResponse:
        return await self.client.redis.get(cache, f"item:{self.random.randrange(1000)}")

    @step("look")
    async def buy(self, cache: URL = REDIS) -> RedisResponse:
        answer = await self.client.redis.transaction(
            cache, ("INCR", "sold"), ("LPUSH", "orders", "lamp"), ("LTRIM", "orders", 0, 99)
        )
        if answer.ok and answer.value[0] < 1:
            answer.fail(f"{answer.value[0]} were sold")
        return answer
