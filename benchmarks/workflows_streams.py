"""What `protocols_streams.py` runs: one exchange a step."""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, PostgresResponse, RedisResponse, WebSocketResponse

TARGET = os.environ.get("BENCH_TARGET", "http://127.0.0.1:8000")


class Ws(Workflow):
    @step()
    async def echo(self, room: URL = TARGET.replace("http", "ws") + "/ws") -> WebSocketResponse:
        return await self.client.websocket.request(room, "hello, WebSocket")


class Redis(Workflow):
    @step()
    async def get(self, cache: URL = TARGET) -> RedisResponse:
        return await self.client.redis.get(cache, "key")


class Postgres(Workflow):
    @step()
    async def select(self, bank: URL = TARGET) -> PostgresResponse:
        return await self.client.postgres.query(bank, "select n from one where n = $1", 1)
