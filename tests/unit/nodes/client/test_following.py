"""Following a job: what a break of the stream, a strange update or a stopped client do to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from hyperscale.errors import RunFailed
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.watch import Callbacks, JobWatch
from hyperscale.nodes.protocol.jobs import JobUpdate, JobView, Outline, Window
from hyperscale.wire.errors import Disconnected
from tests.unit.nodes.manager.cases import FACTS
from tests.unit.sim.worlds import finish, world_of

RUNNING = JobUpdate(
    outline=Outline(workflows=(FACTS,)), view=JobView(job_id="j1", name="j", status="running")
)
ENDED = JobUpdate(view=JobView(job_id="j1", name="j", status="completed"), final=True)
STRANGE = JobUpdate(
    windows=(
        Window(
            workflow=FACTS.name,
            index=1,
            elapsed_s=1.0,
            delta=Delta(seq=1, requests=[RequestDelta(RequestKey("of another version"), count=1)]),
        ),
    )
)

Item = JobUpdate | float | Exception
"""An update, a silence in seconds, or the end of the stream."""


class Stream:
    """What a subscription gives."""

    def __init__(self, *items: Item) -> None:
        self._items = items

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[JobUpdate]:
        for item in self._items:
            if isinstance(item, JobUpdate):
                yield item
            elif isinstance(item, Exception):
                raise item
            else:
                await asyncio.sleep(item)


class Managers:
    patience_s = 60.0

    def __init__(self, *streams: Stream) -> None:
        self._streams = list(streams)

    async def subscribe(self, _message: object, _expect: type[Any]) -> Stream:
        return self._streams.pop(0)

    def next(self) -> None:
        pass


def play(story: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    world = world_of("c1")
    finish(world, story(world.host("c1")))


def watch(host: Any, *streams: Stream) -> JobWatch:
    cluster = Cluster(host, Managers(*streams))  # type: ignore[arg-type]
    one = JobWatch(host, cluster, "j1", Callbacks())
    one.start()
    return one


def test_a_long_silence_before_a_break_is_no_reason_to_give_up() -> None:
    """A job without news for an hour, then its leader dies."""

    async def story(host: Any) -> None:
        streams = Stream(RUNNING, 3_600.0, Disconnected("gone")), Stream(RUNNING, ENDED)
        assert (await watch(host, *streams).outcome()).status == "completed"

    play(story)


def test_breaks_without_any_word_are_given_up_in_the_end() -> None:
    async def story(host: Any) -> None:
        broken = [Stream(Disconnected("gone")) for _ in range(1_000)]
        began = host.clock.now()
        with pytest.raises(RunFailed):
            await watch(host, Stream(RUNNING, Disconnected("gone")), *broken).outcome()
        assert 60.0 <= host.clock.now() - began < 120.0

    play(story)


def test_an_update_that_cannot_be_understood_ends_the_waiting() -> None:
    async def story(host: Any) -> None:
        with pytest.raises(RunFailed, match="another version"):
            async with asyncio.timeout(10.0):
                await watch(host, Stream(RUNNING, STRANGE, 1e6)).outcome()

    play(story)


def test_who_waits_when_the_client_stops_is_told() -> None:
    async def story(host: Any) -> None:
        one = watch(host, Stream(RUNNING, 1e6))
        waiting = asyncio.ensure_future(one.outcome())
        await asyncio.sleep(1.0)
        await host.tasks.stop()
        with pytest.raises(RunFailed):
            async with asyncio.timeout(10.0):
                await waiting

    play(story)
