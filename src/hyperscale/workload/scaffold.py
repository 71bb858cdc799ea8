"""The test file that `hyperscale new` writes: short, true, and ready to run.

By default it aims at the address where `hyperscale demo --serve` listens, so it can be tried at
once.
"""

from __future__ import annotations

import msgspec

DEFAULT_URL = "http://127.0.0.1:8080/"

_STARTER = '''"""A load test. Run it:         hyperscale run FILE
See every request once:      hyperscale run FILE --once
Start a target to practise:  hyperscale demo --serve
"""

from hyperscale import Workflow, check, step
from hyperscale.testing import URL, Headers, HTTPResponse, Params

TARGET = {target}  # the system under test


class Quickstart(Workflow):
    vus = 10  # users at the same time; each repeats the steps below
    duration = "10s"
    thresholds = [  # crossed: exit code 99
        "http_req_duration: p(95)<500",  # milliseconds
        "http_req_failed: rate<0.01",
        "checks: rate>0.99",
    ]

    # Every request counts, under its step. Typed defaults such as `url` are resolved and encoded
    # once, before the clock starts.
    @step()
    async def home(self, url: URL = TARGET) -> HTTPResponse:
        return await self.client.http.get(url)

    # Runs after home, if that got an answer. `async def flow(self)` can say more.
    @step("home")
    async def search(
        self,
        url: URL = TARGET,
        params: Params = {{"q": "hyperscale"}},
        headers: Headers = {{"accept": "*/*"}},
    ) -> HTTPResponse:
        return await self.client.http.get(url, params=params, headers=headers)

    # A check judges what a step returned: False, or an exception, means that it failed.
    @check("search")
    def search_answers(self, search: HTTPResponse) -> bool:
        return search.status == 200
'''


def scaffold(url: str = DEFAULT_URL) -> str:
    """The text of a new test file for `url`."""
    return _STARTER.format(target=msgspec.json.encode(url).decode())
