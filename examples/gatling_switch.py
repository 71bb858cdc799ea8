"""A Gatling scenario, ported: feed, exitHereIfFailed, repeat and randomSwitch are plain Python.

Each iteration is one arriving user of Gatling. One of the five in the data has a wrong password:
the login fails, `stop_iteration` ends that iteration, and the summary counts it.

hyperscale run examples/gatling_switch.py
"""

import asyncio
import os

from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Visitor(Workflow):
    rate = "10/s"  # rampUsersPerSec(10).to(40).during(5)
    stages = [("5s", 40), ("5s", 40)]
    host = TARGET
    data = [
        {"user": "ada", "password": "lovelace"},
        {"user": "grace", "password": "hopper"},
        {"user": "alan", "password": "turing"},
        {"user": "mary", "password": "jackson"},
        {"user": "mallory", "password": "wrong"},
    ]
    thresholds = {
        "http_req_duration": "p(95)<500",
        "http_req_failed{step:login}": "rate<30%",
        "http_req_failed{group:shopping}": "rate<1%",
    }

    async def flow(self) -> None:
        login = await self.login()
        if not login.ok:  # exitHereIfFailed
            self.stop_iteration()
        for page in range(3):  # repeat(3, "page")
            await self.browse(page)
            await asyncio.sleep(0.02)  # pause
        branch = self.random.choices([self.search, self.order], weights=[70, 30])  # randomSwitch
        await branch[0](login.json()["token"])

    @step()
    async def login(self) -> HTTPResponse:
        return await self.client.http.post("/login", json=self.row)

    @step(group="shopping")
    async def browse(self, page: int) -> HTTPResponse:
        return await self.client.http.get("/items", params={"offset": page * 10, "limit": 10})

    @step(group="shopping")
    async def search(self, token: str) -> HTTPResponse:
        return await self.client.http.get("/me", headers={"Authorization": f"Bearer {token}"})

    @step(group="shopping")
    async def order(self, token: str) -> HTTPResponse:
        headers = {"Authorization": f"Bearer {token}"}
        return await self.client.http.post("/items", headers=headers, json={"item": 1})
