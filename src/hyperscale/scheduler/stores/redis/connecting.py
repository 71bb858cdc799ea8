"""A client for one Redis or for a cluster of them."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

CLUSTER_SCHEME = "redis+cluster://"
CONNECT_S = 5.0
ANSWER_S = 10.0
"""Whoever asks keeps this time. As the client's `socket_timeout` it would cost a task each time one
sends, and the `asyncio.wait_for` behind it forgets cancellations (Python 3.11)."""

Client = Redis | RedisCluster


def connect(url: str) -> Client:
    if url.startswith(CLUSTER_SCHEME):
        return RedisCluster.from_url("redis://" + url.removeprefix(CLUSTER_SCHEME), **_plain())
    return connect_one(url)


def connect_one(url: str) -> Redis:
    return Redis.from_url(url, **_plain())


def _plain() -> dict[str, Any]:
    # A script that is repeated may be one that had happened: the caller decides.
    return {
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": CONNECT_S,
        "socket_timeout": None,
    }
