"""Test data from a file: every iteration takes the next row; after the last one it starts over.

The row is the argument `row` of a step (and `self.row`); the path is looked up beside this file.

hyperscale run examples/data_driven.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class DataDriven(Workflow):
    vus = 6
    duration = "10s"
    think_time = "20ms"
    data = "users.csv"

    @step()
    async def login(self, row: dict[str, str], url: URL = f"{TARGET}/login") -> HTTPResponse:
        credentials = {"user": row["name"], "password": row["password"]}
        return await self.client.http.post(url, json=credentials)

    @step("login")
    async def search(self, row: dict[str, str], url: URL = f"{TARGET}/echo") -> HTTPResponse:
        response = await self.client.http.get(url, params={"q": row["query"]})
        if response.ok and response.json()["query"]["q"] != row["query"]:
            response.fail("the answer is to somebody else's question")
        return response
