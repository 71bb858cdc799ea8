"""A client for one Redis or for a cluster of them."""

from __future__ import annotations

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

CLUSTER_SCHEME = "redis+cluster://"

Client = Redis | RedisCluster


def connect(url: str) -> Client:
    # A script that is repeated may be one that had happened: the caller of the store decides.
    if url.startswith(CLUSTER_SCHEME):
        return RedisCluster.from_url(
            "redis://" + url.removeprefix(CLUSTER_SCHEME),
            retry=Retry(NoBackoff(), 0),
            socket_connect_timeout=5.0,
            socket_timeout=10.0,
        )
    return Redis.from_url(
        url, retry=Retry(NoBackoff(), 0), socket_connect_timeout=5.0, socket_timeout=10.0
    )
