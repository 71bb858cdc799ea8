"""A client for one Redis or for a cluster of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import plain_address

CLUSTER_SCHEME = "redis+cluster://"
CONNECT_S = 5.0
ANSWER_S = 10.0
"""Whoever asks keeps this time. As the client's `socket_timeout` it would cost a task each time one
sends, and the `asyncio.wait_for` behind it forgets cancellations (Python 3.11)."""

Client = Redis | RedisCluster


def connect(url: str) -> Client:
    """Raises BadInput for an address that cannot be read."""
    if url.startswith(CLUSTER_SCHEME):
        with _readable(url):
            return RedisCluster.from_url("redis://" + url.removeprefix(CLUSTER_SCHEME), **_plain())
    return connect_one(url)


def connect_one(url: str) -> Redis:
    """Raises BadInput for an address that cannot be read."""
    with _readable(url):
        return Redis.from_url(url, **_plain())


@contextmanager
def _readable(url: str) -> Iterator[None]:
    try:
        yield
    except ValueError:  # its text may hold a piece of the password
        raise BadInput(
            f"{plain_address(url)!r} is not the address of a redis",
            "redis://USER:PASSWORD@HOST:PORT/DB; a / in the password is written %2F, a @ %40",
        ) from None


def _plain() -> dict[str, Any]:
    # A script that is repeated may be one that had happened: the caller decides.
    return {
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": CONNECT_S,
        "socket_timeout": None,
    }
