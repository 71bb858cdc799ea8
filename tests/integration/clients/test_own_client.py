"""A client of a protocol that is not ours keeps the contract, and its results reach a reporter."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hyperscale
from hyperscale import Workflow, step
from hyperscale.clients import ClientPool
from hyperscale.errors import BadInput
from hyperscale.plugin import CustomResult
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT
from tests.fixtures.oracle import OraclePool, ask_oracle

from .conftest import Run
from .scripted import Handler, Peer, serve
from .test_contract import CountingScope, free_port


async def replies(peer: Peer) -> None:
    while line := await peer.reader.readline():
        await peer.send(b"soon\n" if line == b"when?\n" else b"no idea\n")


async def leaves(peer: Peer) -> None:
    await peer.reader.readline()
    await peer.send(b"so")


async def is_silent(peer: Peer) -> None:
    await peer.gone()


@pytest.mark.parametrize(
    ("handler", "outcome"),
    [
        (replies, Outcome.OK),
        (leaves, Outcome.RESET),
        (is_silent, Outcome.TIMEOUT),
        (None, Outcome.REFUSED),
    ],
)
def test_it_keeps_the_contract(run: Run, handler: Handler | None, outcome: Outcome) -> None:
    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        pool = ClientPool(HTTPOptions(), own={"oracle": OraclePool})
        async with serve(handler=handler or replies) as server:
            port = server.port if handler else free_port()
            got = await pool.client().oracle.ask(f"oracle://127.0.0.1:{port}", "when?", timeout=0.3)  # type: ignore[attr-defined]
        await pool.close()
        assert got.outcome is outcome, got.error
        assert (len(scope.rows), len(scope.failures)) == ((1, 0) if got.ok else (0, 1))

    run(go())


@contextmanager
def oracle() -> Iterator[int]:
    """For generator processes: it must answer while the test waits for them."""
    loop = asyncio.new_event_loop()
    sock = socket.create_server(("127.0.0.1", 0))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await replies(Peer(reader, writer))
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = loop.run_until_complete(asyncio.start_server(connected, sock=sock))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield int(sock.getsockname()[1])
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def test_a_run_with_it_is_measured_judged_and_reported(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with oracle() as port:
        results = hyperscale.run(ask_oracle(f"oracle://127.0.0.1:{port}", str(told)), workers=1)
    steps = {one.name: one for one in results.workflows[0].steps}
    assert (steps["when"].count, steps["when"].failed, steps["when"].kind) == (6, 0, "oracle")
    assert (steps["why"].count, steps["why"].failed) == (6, 6)
    assert [error.detail for error in steps["why"].errors] == ["no"]
    assert [one.passed for one in results.thresholds] == [False, True]
    lines = told.read_text().splitlines()
    total = {"metric_type": "count", "metric_group": "requests", "metric_name": "total"}
    row = {"metric_workflow": "Pilgrim", "metric_step": "when", **total, "metric_value": 6}
    assert f"step {row}" in lines
    assert any(line.startswith("workflow") and "'asked'" in line for line in lines)


class Message(CustomResult):
    message: str | None

    def context(self) -> str:
        return f"the message was {self.message!r}"

    @property
    def successful(self) -> bool:
        return self.message is not None


def test_a_result_may_have_fields_timings_and_a_word_on_success() -> None:
    class Talker(Workflow):
        vus = 1
        iterations = 2

        @step()
        async def hears(self) -> Message:
            return Message(message="hi", timings={"total": 0.25})

        @step("hears")
        async def misses(self) -> Message:
            return Message(message=None)

    results = hyperscale.run(Talker, workers=1)
    hears, misses = results.workflows[0].steps
    assert (hears.count, hears.failed) == (2, 0)
    assert hears.service.p50_ms == pytest.approx(250, rel=0.02)
    assert (misses.failed, misses.errors[0].samples[0]) == (2, "the message was None")
    with pytest.raises(TypeError, match="no field 'massage'"):
        Message(massage="hi")
    with pytest.raises(TypeError, match="timings has 'totl'"):
        Message(message="hi", timings={"totl": 1})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"reporting": "results.json"}, "must be a config or a CustomReporter"),
        ({"protocols": {"oracle": 1}}, "protocols has 'oracle': 1"),
        ({"protocols": [OraclePool]}, "must be a dict"),
    ],
)
def test_what_the_author_got_wrong(settings: dict[str, object], reason: str) -> None:
    async def nothing(self: object) -> CustomResult:
        return CustomResult()

    with pytest.raises(BadInput, match=reason):
        hyperscale.run(type("Wrong", (Workflow,), {"nothing": step()(nothing), **settings}))
