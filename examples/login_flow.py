"""A user's journey: log in, two requests in parallel with the token, one that needs them both.

A step names the steps it comes after. Its arguments named like an earlier step receive that
step's response, each virtual user its own. Without an answer to the login the others are skipped.

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
    async def profile(self, login: HTTPResponse, url: URL = f"{TARGET}/me") -> HTTPResponse:
        return await self.client.http.get(url, headers=bearer(login))

    @step("login")
    async def catalogue(self, login: HTTPResponse, url: URL = f"{TARGET}/items") -> HTTPResponse:
        return await self.client.http.get(url, headers=bearer(login), params={"limit": 5})

    @step("profile", "catalogue")
    async def order(
        self, login: HTTPResponse, catalogue: HTTPResponse, url: URL = f"{TARGET}/items"
    ) -> HTTPResponse:
        wanted = catalogue.json()["items"][0]["id"]
        return await self.client.http.post(url, headers=bearer(login), json={"item": wanted})

    @check("order")
    def order_was_accepted(self, order: HTTPResponse) -> bool:
        return order.status == 201


def bearer(login: HTTPResponse) -> dict[str, str]:
    return {"Authorization": f"Bearer {login.json()['token']}"}
