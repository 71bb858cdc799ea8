"""Many users against a server that does everything wrong: whose answer, how many, what is left.

Each call has a token in its path, which its answer repeats. Bytes that the server sends unasked are
marked: they may be taken for an answer only if they came after the next request was written, which
nobody can tell from an answer. Then the answers behind them are those of the request before.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psutil
import pytest

from hyperscale.clients import Client
from hyperscale.engine.scope import UnmeasuredScope
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import CallResult, Outcome
from hyperscale.workload.scope import CURRENT, Label, Note

from .conftest import Run
from .hostile_server import BEHIND_UNASKED, UNASKED_LATER, HostileServer, hostile_server
from .scripted import pool, until

USERS = 20
CALLS = 50
OPTIONS: dict[str, dict[str, Any]] = {
    "per_vu": {"connections": "per_vu"},
    "shared": {"connections": "shared", "max_connections": 8},
    "fresh": {"connections": "fresh"},
}
LONG = b"x" * 400_000


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with hostile_server() as made:
        yield made


class TokenScope(UnmeasuredScope):
    """Counts requests by their name, which is the token."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: Counter[str] = Counter()

    def open(self, label: Label) -> Note:
        def note(row: tuple[float, ...]) -> None:
            self.counted[label.name] += 1

        return note

    def failed(self, label: Label, result: CallResult, *, sent: bool) -> None:
        self.counted[label.name] += sent


class Load:
    """What the calls came to."""

    def __init__(self, url: str, seed: str) -> None:
        self._url = url
        self._seed = seed
        self.outcomes: Counter[str] = Counter()
        self.how: dict[str, str] = {}
        self.taken_unasked = 0
        self.foreign: list[tuple[str, str]] = []

    async def user(self, vu: Client, number: int) -> None:
        dice = random.Random(f"{self._seed} {number}")
        for at in range(CALLS):
            kind = dice.choices(("GET", "POST", "PUT", "LONG", "GEN"), (45, 20, 10, 10, 15))[0]
            token = f"{kind}-{self._seed}-{number:02}-{at:03}"
            how = dice.choices(("whole", "cancelled", "short"), (70, 12, 18))[0]
            call = asyncio.create_task(self._call(vu, kind, token, how == "short"))
            if how == "cancelled":
                await self._cancel(call, dice)
            else:
                await asyncio.wait([call])
            self._judge(call, token)

    async def _call(self, vu: Client, kind: str, token: str, short: bool) -> HTTPResponse:
        url = f"{self._url}/{token}"
        timeout = 0.02 if short else None
        if kind == "GET":
            return await vu.http.get(url, timeout=timeout, name=token)
        if kind == "PUT":
            return await vu.http.put(url, data=b"y" * 1000, timeout=timeout, name=token)
        data: Any = b"y" * 1000
        if kind != "POST":
            data = LONG if kind == "LONG" else self._pieces()
        return await vu.http.post(url, data=data, timeout=timeout, name=token)

    async def _pieces(self) -> AsyncIterator[bytes]:
        for size in (10, 70_000, 1000):
            yield b"z" * size
            await asyncio.sleep(0)

    async def _cancel(self, call: asyncio.Task[HTTPResponse], dice: random.Random) -> None:
        after = dice.choice((0, 1, 2, 0.001, 0.004))
        if isinstance(after, int):
            for _ in range(after):
                await asyncio.sleep(0)
        else:
            await asyncio.wait([call], timeout=after)
        call.cancel()
        await asyncio.wait([call])

    def _judge(self, call: asyncio.Task[HTTPResponse], token: str) -> None:
        if call.cancelled():
            self.outcomes["cancelled"] += 1
            self.how[token] = "cancelled"
            return
        got = call.result()
        self.how[token] = f"{got} {got.error} {got.bytes_out} {got.headers if got.head else None}"
        self.outcomes[got.outcome.name] += 1
        if got.outcome is not Outcome.OK:
            return
        if got.text() == token and got.headers.get("x-token", token) == token:
            return
        if got.text().startswith(UNASKED_LATER) or BEHIND_UNASKED in got.headers:
            self.taken_unasked += 1
        else:
            self.foreign.append((token, got.text()))


async def ended(before: set[asyncio.Task[Any]], port: int) -> None:
    def sockets() -> list[Any]:
        found = psutil.Process().net_connections("tcp")
        return [one for one in found if one.raddr and one.raddr.port == port]

    await until(lambda: asyncio.all_tasks() == before)
    assert sockets() == []


def check(load: Load, scope: TokenScope, told: dict[str, Any]) -> None:
    seen = Counter(told["seen"])
    assert load.foreign == []
    assert not scope.counted - seen, {t: load.how.get(t) for t in scope.counted - seen}
    assert not seen - scope.counted, {t: load.how.get(t) for t in seen - scope.counted}
    assert max(seen.values()) <= 2
    twice = {token: times for token, times in seen.items() if times > 1}
    assert all(token.startswith(("GET", "PUT")) for token in twice), twice
    assert told["torn"] == 0
    # The dice have been fair: all of it has happened, and most calls came to something.
    assert len(told["done"]) == 15
    assert {"OK", "RESET", "TIMEOUT", "cancelled"} <= load.outcomes.keys()
    assert load.outcomes["OK"] > USERS * CALLS / 2


@pytest.mark.parametrize("connections", list(OPTIONS))
def test_a_hostile_server(
    run_each_way: Run,
    server: HostileServer,
    connections: str,
    request: pytest.FixtureRequest,
) -> None:
    seed = request.node.callspec.id.replace("-", "+")

    async def go() -> tuple[Load, TokenScope]:
        load = Load(server.url, seed)
        before = asyncio.all_tasks()
        async with pool(**OPTIONS[connections]) as made:
            scope = TokenScope()
            CURRENT.set(scope)
            vus = [made.client() for _ in range(USERS)]
            await asyncio.gather(*(load.user(vu, number) for number, vu in enumerate(vus)))
            assert not any(one.busy for one in made._http.connections)
            if connections == "shared":
                assert len(made._http.connections) <= 8
                assert made._http.queue._opening == 0
            for vu in vus:
                vu.close()
            if connections != "shared":
                assert not made._http.connections
        assert not made._http.connections
        await ended(before, server.port)
        return load, scope

    load, scope = run_each_way(go())
    check(load, scope, server.report())
