"""What Hyperscale runs in `protocols.py`: one class for each row."""

from __future__ import annotations

import os

from workflows import PATH, TARGET, Bench

from hyperscale import step
from hyperscale.testing import URL, Data, GRPCResponse, HTTP2Response, HTTP3Response

GRPC_TARGET = os.environ["BENCH_TARGET"].replace("http", "grpc", 1)


class Http2(Bench):
    @step()
    async def home(self, url: URL = URL(f"{TARGET}{PATH}")) -> HTTP2Response:
        return await self.client.http2.get(url)


class Http3(Bench):
    @step()
    async def home(self, url: URL = URL(f"{TARGET}{PATH}")) -> HTTP3Response:
        return await self.client.http3.get(url)


class Grpc(Bench):
    @step()
    async def say(
        self, address: URL = URL(GRPC_TARGET), note: Data = Data({"text": "hello"})
    ) -> GRPCResponse:
        return await self.client.grpc.unary(address, "hyperscale.Echo/Say", note)
