"""One embedded target for all tests of a worker process."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hyperscale.target.process import running


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    with running() as url:
        yield url


@pytest.fixture
def stats(target: str) -> Callable[[], dict[str, Any]]:
    """The target's own count, from zero."""
    urllib.request.urlopen(f"{target}/stats/reset", timeout=10).read()

    def read() -> dict[str, Any]:
        body: dict[str, Any] = json.load(urllib.request.urlopen(f"{target}/stats", timeout=10))
        return body

    return read
