"""A choice by weight, apart from the other workflows: code from before weights runs those too."""

from __future__ import annotations

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPOptions, HTTPResponse

TARGET = os.environ["BENCH_TARGET"]


class Weighted(Workflow):
    vus = 64
    duration = "10s"
    http = HTTPOptions(verify=False)

    @step(weight=10)
    async def browse(self, url: URL = URL(f"{TARGET}/")) -> HTTPResponse:
        return await self.client.http.get(url)

    @step(weight=3)
    async def view(self, url: URL = URL(f"{TARGET}/")) -> HTTPResponse:
        return await self.client.http.get(url)

    @step(weight=1)
    async def order(self, url: URL = URL(f"{TARGET}/")) -> HTTPResponse:
        return await self.client.http.get(url)
