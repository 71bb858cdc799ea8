"""What a hostile or hurried peer does to the client's sockets: every call ends, and truly."""

from __future__ import annotations

import asyncio
from time import perf_counter

from hyperscale.workload.results import Outcome

from .conftest import Run
from .scripted import Peer, pool, response, serve, until

# -- deadlines -------------------------------------------------------------------------------------


def test_a_call_that_waits_for_a_connection_ends_in_time_while_others_connect(run: Run) -> None:
    async def go() -> None:
        async with (
            serve(handler=lambda peer: peer.gone()) as server,
            pool(connections="shared", max_connections=1) as made,
        ):
            url = server.url.replace("http:", "https:")  # a handshake that never ends
            first = asyncio.ensure_future(made.client().http.get(url))
            await until(lambda: server.connections == 1)
            got = await made.client().http.get(url, timeout=0.1)
            assert got.outcome is Outcome.TIMEOUT
            assert "became free in the shared pool" in got.error
            assert not first.done()
            first.cancel()

    run(go())


def test_a_call_with_less_time_than_others_ends_in_time_in_the_queue(run: Run) -> None:
    async def go() -> None:
        async with (
            serve(handler=lambda peer: peer.gone()) as server,
            pool(connections="shared", max_connections=1) as made,
        ):
            first = asyncio.ensure_future(made.client().http.get(server.url))
            await until(lambda: made._http._due > perf_counter() + 1)  # after a look at all calls
            got = await made.client().http.get(server.url, timeout=0.1)
            assert got.outcome is Outcome.TIMEOUT
            assert "became free in the shared pool" in got.error
            assert not first.done()
            first.cancel()

    run(go())


def test_a_look_at_all_calls_just_before_a_request_is_written_does_not_lose_its_deadline(
    run: Run,
) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.request()
            await peer.send(response())
            await peer.gone()

        async with serve(handler=handler) as server, pool(timeout=60) as made:
            vu = made.client()
            assert (await vu.http.get(server.url)).ok
            call = asyncio.ensure_future(vu.http.get(server.url, timeout=0.1))
            await asyncio.sleep(0)
            assert [one.busy and one.sent_at is None for one in made._http.connections] == [True]
            made._http._due = 0.0
            made.sweep(perf_counter())
            assert (await call).outcome is Outcome.TIMEOUT

    run(go())
