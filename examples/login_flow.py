"""A user's journey: log in, two requests in parallel with the token, one that needs them both.

A step names the steps it comes after. Its arguments named like an earlier step receive that
step's response, each virtual user its own.

hyperscale run examples/login_flow.py
hyperscale run examples/login_flow.py --once      # one iteration, every exchange shown
"""

import os

from hyperscale import Workflow, check, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class LoginFlow(Workflow):
    vus = 20
    duration = "15s"
    think_time = "50ms"
    thresholds = {"login": "p(95)<500", "order_was_accepted": "rate>0.99"}

    @step()
    async def login(self, url: URL = f"{TARGET}/login") -> HTTPResponse:
        return await self.client.http.post(url, json={"user": "ada", "password": "secret"})

    @step("login")
    async def profile(
        self, url: URL = f"{TARGET}/me", login: HTTPResponse | None = None
    ) -> HTTPResponse:
        return await self.client.http.get(url, headers=bearer(login))

    @step("login")
    async def catalogue(
        self, url: URL = f"{TARGET}/items", login: HTTPResponse | None = None
    ) -> HTTPResponse:
        return await self.client.http.get(url, headers=bearer(login), params={"limit": 5})

    @step("profile", "catalogue")
    async def order(
        self,
        url: URL = f"{TARGET}/items",
        login: HTTPResponse | None = None,
        catalogue: HTTPResponse | None = None,
    ) -> HTTPResponse:
        wanted = catalogue.json()["items"][0]["id"] if catalogue is not None else 1
        return await self.client.http.post(url, headers=bearer(login), json={"item": wanted})

    @check("order")
    async def order_was_accepted(self, order: HTTPResponse | None = None) -> Exception | None:
        if order is None or order.status_code != 201:
            return AssertionError("the order was not accepted")
        return None


def bearer(login: HTTPResponse | None) -> dict[str, str]:
    token = login.json()["token"] if login is not None else ""
    return {"Authorization": f"Bearer {token}"}
