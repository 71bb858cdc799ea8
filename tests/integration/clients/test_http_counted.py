"""A request is what was written to a socket: counted here and by the server, they are as many."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from time import perf_counter

import pytest

from hyperscale.engine.scope import UnmeasuredScope
from hyperscale.workload.scope import CURRENT

from .conftest import Run
from .scripted import Peer, client, pool, response, serve, until


def counted() -> UnmeasuredScope:
    scope = UnmeasuredScope()
    CURRENT.set(scope)
    return scope


async def silent(peer: Peer) -> None:
    await peer.gone()


def test_a_request_that_is_made_once_more_counts_twice(run: Run) -> None:
    seen: list[bytes] = []

    def once_each(request: bytes) -> bytes | None:
        seen.append(request)
        return None if len(seen) == 2 else response()

    async def go() -> None:
        async with serve(once_each) as server, client() as vu:
            scope = counted()
            assert (await vu.http.get(server.url)).ok
            assert (await vu.http.get(server.url)).ok
            assert scope.requests == len(server.requests) == 3

    run(go())


def test_calls_that_are_given_up_count_if_they_were_written(run: Run) -> None:
    async def go() -> None:
        async with serve(handler=silent) as server, pool() as made:
            scope = counted()
            vu = made.client()
            early = asyncio.create_task(vu.http.get(server.url))
            await asyncio.sleep(0)
            early.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await early
            assert scope.requests == 0
            late = asyncio.create_task(vu.http.get(server.url))
            while not any(one.sent_at for one in made._http.connections):  # noqa: ASYNC110
                await asyncio.sleep(0)
            late.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await late
            assert scope.requests == 1

    run(go())


def test_an_answer_that_nobody_waits_for_any_more_is_of_a_request_all_the_same(run: Run) -> None:
    async def go() -> None:
        async with serve(handler=silent) as server, pool() as made:
            scope = counted()
            call = asyncio.create_task(made.client().http.get(server.url))
            while not any(one.sent_at for one in made._http.connections):  # noqa: ASYNC110
                await asyncio.sleep(0)
            (connection,) = made._http.connections
            connection.received(response(), perf_counter())
            call.cancel()  # in the same turn of the loop
            with contextlib.suppress(asyncio.CancelledError):
                await call
            assert call.cancelled()
            assert scope.requests == 1

    run(go())


def test_a_judge_that_raises_does_not_undo_the_exchange(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as server, client() as vu:
            scope = counted()
            with contextlib.suppress(ZeroDivisionError):
                await vu.http.get(server.url, expect=lambda answer: 1 / 0)
            assert scope.requests == len(server.requests) == 1

    run(go())


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("cancelled_first", [False, True])
def test_an_upload_that_is_answered_early_and_given_up_in_one_turn_counts(
    run: Run, streamed: bool, cancelled_first: bool
) -> None:
    async def go() -> None:
        never = asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            yield b"x"
            await never.wait()

        async def deaf(peer: Peer) -> None:
            await never.wait()

        async with serve(handler=deaf) as server, pool() as made:
            scope = counted()
            data = pieces() if streamed else bytes(20_000_000)
            call = asyncio.create_task(made.client().http.post(server.url, data=data))
            await until(lambda: any(one.sent_at for one in made._http.connections))
            (connection,) = made._http.connections
            if cancelled_first:
                call.cancel()
            connection.received(response(), perf_counter())
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            assert call.cancelled()
            assert scope.requests == 1

    run(go())


def test_a_request_is_written_twice_at_most(run: Run) -> None:
    """In a shared pool the second connection may be one that others have used before."""

    async def go() -> None:
        async def second_closes(peer: Peer) -> None:
            if request := await peer.request():
                server.requests.append(request)
                await peer.send(response())
            if request := await peer.request():
                server.requests.append(request)

        options = {"connections": "shared", "max_connections": 1}
        async with serve(handler=second_closes) as server, pool(**options) as made:
            scope = counted()
            assert (await made.client().http.get(server.url)).ok
            paths = ["a", "b", "c", "d"]
            await asyncio.gather(*(made.client().http.get(f"{server.url}/{at}") for at in paths))
            seen = Counter(request.split(b" ")[1] for request in server.requests)
            assert max(seen.values()) <= 2, seen
            assert scope.requests == len(server.requests)

    run(go())
