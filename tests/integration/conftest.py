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


Stats = Callable[[], dict[str, Any]]


@pytest.fixture
def reset_stats(target: str) -> Callable[[], Stats]:
    """Sets the target's own count to zero and gives what reads it."""

    def read() -> dict[str, Any]:
        body: dict[str, Any] = json.load(urllib.request.urlopen(f"{target}/stats", timeout=10))
        return body

    def reset() -> Stats:
        urllib.request.urlopen(f"{target}/stats/reset", timeout=10).read()
        return read

    return reset


@pytest.fixture
def stats(reset_stats: Callable[[], Stats]) -> Stats:
    """The target's own count, from zero."""
    return reset_stats()
