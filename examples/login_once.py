"""Log in once, keep the token, and have the login in the numbers. The flow is plain Python.

`on_start` runs once for each user; what it puts on `self` stays with that user. `flow` is one
iteration: the steps run when it calls them, and each call is measured.

hyperscale run examples/login_once.py
hyperscale run examples/login_once.py --once      # one iteration, every exchange shown
"""

import os

from hyperscale import Workflow, check, feed, step
from hyperscale.testing import HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Shop(Workflow):
    vus = 10
    duration = "10s"
    think_time = "50ms"
    data = feed("users.csv", per="vu")
    host = TARGET
    thresholds = {
        "login": "p(95)<500",  # the requests of a step
        "step_duration{step:order}": "p(95)<1s",  # the step, with all that is in it
        "http_req_failed": "rate<1%",
    }

    token = ""

    async def on_start(self) -> None:
        answer = await self.login()
        if not answer.ok:
            self.stop_user()
        self.token = answer.json()["token"]

    async def flow(self) -> None:
        await self.profile()
        for item in self.random.sample(range(1, 1000), 3):
            await self.view(item)
        if self.random.random() < 0.2:
            await self.order()

    @step()
    async def login(self) -> HTTPResponse:
        who = {"user": self.row["name"], "password": self.row["password"]}
        return await self.client.http.post("/login", json=who)

    @step()
    async def profile(self) -> HTTPResponse:
        return await self.client.http.get("/me", headers=self.bearer())

    @step()
    async def view(self, item: int) -> HTTPResponse:
        return await self.client.http.get(f"/items/{item}", name="/items/{id}")

    @step()
    async def order(self) -> HTTPResponse:
        listing = await self.client.http.get("/items", params={"limit": 5})
        first = listing.json()["items"][0]["id"]
        return await self.client.http.post("/items", headers=self.bearer(), json={"item": first})

    @check("order")
    def was_accepted(self, order: HTTPResponse) -> bool:
        return order.status == 201

    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}
