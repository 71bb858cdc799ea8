"""A load test inside a test suite: run it, assert on its results.

pytest examples/test_with_pytest.py
hyperscale run examples/test_with_pytest.py       # the same class from the command line
"""

import os

import hyperscale
from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Items(Workflow):
    vus = 5
    duration = "2s"
    think_time = "5ms"

    @step()
    async def listing(self, url: URL = f"{TARGET}/items") -> HTTPResponse:
        return await self.client.http.get(url, params={"limit": 10})


def test_listing_is_fast_enough() -> None:
    results = hyperscale.run(Items, workers=1)

    (listing,) = results.workflows[0].steps
    assert listing.count > 0
    assert listing.failed == 0, listing.errors
    assert listing.service.p95_ms < 500
