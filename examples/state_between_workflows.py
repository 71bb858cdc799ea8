"""Two workflows: the first logs in and provides a token, the second runs after it and uses it.

Both sides name each other, so no value crosses by accident.

hyperscale run examples/state_between_workflows.py
"""

import os

from hyperscale import Provide, Use, Workflow, depends, state, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class SignIn(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def login(self, url: URL = f"{TARGET}/login") -> HTTPResponse:
        return await self.client.http.post(url, json={"user": "ada", "password": "secret"})

    @state("Browse")
    def token(self) -> Provide[str]:
        return self.login.response.json()["token"]


@depends("SignIn")
class Browse(Workflow):
    vus = 10
    duration = "10s"

    @state("SignIn")
    def bearer(self, token: str = "") -> Use[str]:
        return f"Bearer {token}"

    @step()
    async def profile(self, url: URL = f"{TARGET}/me") -> HTTPResponse:
        return await self.client.http.get(url, headers={"Authorization": self.bearer()})
