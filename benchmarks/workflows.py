"""What Hyperscale runs in the benchmarks. The target's address comes from the environment.

Nobody checks the certificate of the target: wrk cannot, and all do the same.
"""

from __future__ import annotations

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, Data, HTTPOptions, HTTPResponse

TARGET = os.environ["BENCH_TARGET"]
PATH = os.environ.get("BENCH_PATH", "/")
TARGETS = os.environ.get("BENCH_TARGETS", TARGET).split(",")  # addresses of the same one
POSTED_BYTES = 10_000


class Bench(Workflow):
    vus = 64
    duration = "10s"
    http = HTTPOptions(verify=False)


class Get(Bench):
    @step()
    async def home(self, url: URL = URL(f"{TARGET}{PATH}")) -> HTTPResponse:
        return await self.client.http.get(url)


class GetRead(Bench):
    """The body is read too, which is when a compressed one is decoded."""

    @step()
    async def home(self, url: URL = URL(f"{TARGET}{PATH}")) -> HTTPResponse:
        response = await self.client.http.get(url)
        response.text()
        return response


class Fresh(Get):
    """A new connection for each request."""

    http = HTTPOptions(verify=False, connections="fresh")


class Post(Bench):
    @step()
    async def post(
        self, url: URL = URL(f"{TARGET}/post"), body: Data = Data(b"x" * POSTED_BYTES)
    ) -> HTTPResponse:
        return await self.client.http.post(url, data=body)


class Flow(Bench):
    @step()
    async def login(
        self,
        url: URL = URL(f"{TARGET}/login"),
        credentials: Data = Data({"user": "ada", "password": "lovelace"}),
    ) -> HTTPResponse:
        return await self.client.http.post(url, data=credentials)

    @step("login")
    async def profile(
        self, url: URL = URL(f"{TARGET}/me"), login: HTTPResponse | None = None
    ) -> HTTPResponse:
        token = login.json()["token"]
        return await self.client.http.get(url, headers={"Authorization": f"Bearer {token}"})


class GetFlow(Get):
    """The same request, called by a flow."""

    async def flow(self) -> None:
        await self.home()


class Ten(Bench):
    """Ten calls in one step."""

    @step()
    async def ten(self, url: URL = URL(f"{TARGET}/")) -> HTTPResponse:
        for _ in range(9):
            await self.client.http.get(url)
        return await self.client.http.get(url)


# Six workflows that run at once, in equal parts.


class Browse(Get):
    vus = 10


class Search(Get):
    vus = 10


class View(Get):
    vus = 10


class Order(Get):
    vus = 10


class Pay(Get):
    vus = 10


class Leave(Get):
    vus = 10


class Waiting(Bench):
    """Users of whom nearly all wait at any time, spread over the addresses of the target."""

    think_time = ("20s", "60s")

    @step()
    async def look(self) -> HTTPResponse:
        return await self.client.http.get(f"{TARGETS[self.vu_id % len(TARGETS)]}/")


class Closed(Workflow):
    """Ten users, each waiting for a slow answer before asking again."""

    vus = 10
    duration = "5s"

    @step()
    async def slow(self, url: URL = URL(f"{TARGET}/delay/20")) -> HTTPResponse:
        return await self.client.http.get(url)


class Open(Workflow):
    """Arrivals on schedule; the cap has room for all who arrive while the target is frozen."""

    rate = "1000/s"
    max_vus = 2000
    duration = "6s"

    @step()
    async def brief(self, url: URL = URL(f"{TARGET}/delay/5")) -> HTTPResponse:
        return await self.client.http.get(url)
