"""The load test of `hyperscale demo`: people in a small shop, as a user would write it."""

# Plain values as defaults are how a step is written; the framework wraps them.
# mypy: disable-error-code="assignment, no-any-return"

import os

from hyperscale import Workflow, check, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Shop(Workflow):
    stages = (("2s", 30), ("4s", 30), ("1s", 10))
    think_time = ("5ms", "25ms")
    thresholds = (
        "http_req_failed: rate<0.01",
        "http_req_duration: p(95)<200ms",
        "order_accepted: rate>0.99",
    )

    @step()
    async def browse(self, url: URL = f"{TARGET}/items") -> HTTPResponse:
        return await self.client.http.get(url, params={"limit": 20})

    @step("browse")
    async def login(self, url: URL = f"{TARGET}/login") -> HTTPResponse:
        return await self.client.http.post(url, json={"user": "ada", "password": "secret"})

    @step("login")
    async def profile(
        self, url: URL = f"{TARGET}/me", login: HTTPResponse | None = None
    ) -> HTTPResponse:
        return await self.client.http.get(url, headers=bearer(login))

    @step("login")
    async def advice(self, url: URL = f"{TARGET}/delay/12") -> HTTPResponse:
        return await self.client.http.get(url)

    @step("profile", "advice")
    async def order(
        self,
        url: URL = f"{TARGET}/items",
        browse: HTTPResponse | None = None,
        login: HTTPResponse | None = None,
    ) -> HTTPResponse:
        wanted = browse.json()["items"][0]["id"] if browse is not None else 1
        return await self.client.http.post(url, headers=bearer(login), json={"item": wanted})

    @check("order")
    async def order_accepted(self, order: HTTPResponse | None = None) -> Exception | None:
        if order is None or order.status_code != 201:
            return AssertionError("the order was not accepted")
        return None


def bearer(login: HTTPResponse | None) -> dict[str, str]:
    token = login.json()["token"] if login is not None else ""
    return {"Authorization": f"Bearer {token}"}
