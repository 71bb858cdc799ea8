"""Unary calls with grpcio's asyncio client, a channel for each user: the twin of Grpc."""

from __future__ import annotations

import asyncio
import os
import time

import grpc

NOTE = b"\n\x05hello"
OWN = [("grpc.use_local_subchannel_pool", 1)]


async def user(target: str, until: float) -> None:
    async with grpc.aio.insecure_channel(target, options=OWN) as channel:
        say = channel.unary_unary("/hyperscale.Echo/Say")
        while time.monotonic() < until:
            assert await say(NOTE) == NOTE


async def main() -> None:
    target = os.environ["BENCH_TARGET"].removeprefix("http://")
    until = time.monotonic() + float(os.environ["BENCH_DURATION"].removesuffix("s"))
    await asyncio.gather(*(user(target, until) for _ in range(int(os.environ["BENCH_VUS"]))))


asyncio.run(main())
