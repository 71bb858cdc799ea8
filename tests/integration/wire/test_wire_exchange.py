"""Requests, answers, one-way messages and updates between two nodes on loopback."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.runtime.real import run
from hyperscale.wire.endpoint import Limits
from hyperscale.wire.envelope import Verb, pack_plain
from hyperscale.wire.errors import (
    DeadlineExceeded,
    Disconnected,
    Reason,
    Refused,
    RemoteFailed,
    WireError,
)
from hyperscale.wire.serving import Call, Denial
from tests.integration.wire.nodes import (
    Answer,
    Ask,
    Often,
    Small,
    Tell,
    Tick,
    Urgent,
    Watch,
    connected,
    until,
)


def noise(length: int) -> str:
    """Text that does not compress."""
    return random.Random(length).randbytes(length).decode("latin-1")


def shout(call: Call, ask: Ask) -> Answer:
    return Answer(ask.text.upper())


async def shout_later(call: Call, ask: Ask) -> Answer:
    await asyncio.sleep(0)
    return Answer(ask.text.upper())


async def never(call: Call, ask: Ask) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("handler", [shout, shout_later])
def test_many_requests_share_one_connection(tmp_path: Path, handler: Any) -> None:
    async def main() -> None:
        async with connected(tmp_path, {Ask: handler}) as pair:
            answers = await asyncio.gather(
                *(pair.peer.request(Ask(f"n{number}"), Answer) for number in range(500))
            )
            assert [answer.text for answer in answers] == [f"N{number}" for number in range(500)]
            assert len(pair.server.connections) == 1
            assert pair.server.connections[0].peer.node_id == "worker-1"
            assert (await pair.peer.connection()).in_flight() == (0, 0)

    run(main())


def test_large_messages_arrive_whole(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path, {Ask: shout}) as pair:
            texts = ["x" * 1_000_000, " ".join(map(str, range(100_000))), "é" * 100_000]
            for text in texts:
                assert (await pair.peer.request(Ask(text), Answer)).text == text.upper()

    run(main())


def test_either_side_may_ask(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path, {Ask: shout}, back={Ask: shout_later}) as pair:
            await pair.peer.connection()
            await until(lambda: bool(pair.server.connections))
            (connection,) = pair.server.connections
            back, forth = await asyncio.gather(
                connection.request(Ask("down"), Answer), pair.peer.request(Ask("up"), Answer)
            )
            assert (back.text, forth.text) == ("DOWN", "UP")

    run(main())


def test_one_way_messages_arrive_in_order(tmp_path: Path) -> None:
    got: list[str] = []

    def listen(call: Call, tell: Tell) -> None:
        got.append(tell.text)

    async def main() -> None:
        async with connected(tmp_path, {Tell: listen}) as pair:
            for number in range(200):
                await pair.peer.send(Tell(str(number)))
            await until(lambda: len(got) == 200)
            assert got == [str(number) for number in range(200)]

    run(main())


def test_what_is_told_at_once_needs_a_connection_and_no_answer(tmp_path: Path) -> None:
    got: list[tuple[str, bool]] = []

    def listen(call: Call, ask: Ask) -> Answer:
        got.append((ask.text, call.one_way))
        return Answer("heard")

    async def main() -> None:
        async with connected(tmp_path, {Ask: listen}) as pair:
            assert not pair.peer.tell(Ask("too early"))
            assert await pair.peer.request(Ask("first"), Answer) == Answer("heard")
            assert pair.peer.tell(Ask("second"))
            await pair.peer.request(Ask("third"), Answer)
            assert got == [("first", False), ("second", True), ("third", False)]
            assert (await pair.peer.connection()).counts["late_answers"] == 0
            pair.peer.close()
            assert not pair.peer.tell(Ask("too late"))

    run(main())


def test_a_deadline_ends_both_sides(tmp_path: Path) -> None:
    budgets: list[float | None] = []
    cancelled = asyncio.Event()

    async def slow(call: Call, ask: Ask) -> Answer:
        budgets.append(call.budget_s)
        try:
            return await never(call, ask)
        finally:
            cancelled.set()

    async def main() -> None:
        async with connected(tmp_path, {Ask: slow}) as pair:
            with pytest.raises(DeadlineExceeded, match=r"test\.ask was not answered in time"):
                await pair.peer.request(Ask("x"), Answer, timeout_s=0.05)
            await asyncio.wait_for(cancelled.wait(), 10)
            assert budgets[0] is not None
            assert budgets[0] <= 0.05
            await until(lambda: pair.server.connections[0].in_flight() == (0, 0))

    run(main())


def test_a_cancelled_caller_stops_the_work(tmp_path: Path) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(call: Call, ask: Ask) -> Answer:
        started.set()
        try:
            return await never(call, ask)
        finally:
            cancelled.set()

    async def main() -> None:
        async with connected(tmp_path, {Ask: slow, Tell: lambda call, tell: None}) as pair:
            task = pair.worker.tasks.spawn("ask", pair.peer.request(Ask("x"), Answer))
            await asyncio.wait_for(started.wait(), 10)
            task.cancel()
            await asyncio.wait_for(cancelled.wait(), 10)
            assert (await pair.peer.connection()).in_flight() == (0, 0)

    run(main())


def test_refusals_and_failures_are_typed(tmp_path: Path) -> None:
    def decline(call: Call, ask: Ask) -> Answer:
        raise Refused(call.kind.name, "no cores left", retry_after_s=2.5)

    async def break_down(call: Call, urgent: Urgent) -> Answer:
        raise ZeroDivisionError("secret detail")

    def confuse(call: Call, watch: Watch) -> Any:
        return 17

    async def main() -> None:
        handlers = {Ask: decline, Urgent: break_down, Watch: confuse}
        async with connected(tmp_path, handlers) as pair:
            with pytest.raises(Refused, match=r"test\.ask: no cores left") as refused:
                await pair.peer.request(Ask("x"), Answer)
            assert refused.value.retry_after_s == 2.5
            assert refused.value.code == Reason.DECLINED
            with pytest.raises(RemoteFailed, match="ZeroDivisionError") as failed:
                await pair.peer.request(Urgent("x"), Answer)
            assert "secret" not in str(failed.value)
            with pytest.raises(RemoteFailed, match="TypeError"):
                await pair.peer.request(Watch(1), Answer)
            with pytest.raises(Refused, match="does not answer it") as unanswered:
                await pair.peer.request(Tell("x"), Answer)
            assert unanswered.value.code == Reason.NOT_ANSWERED
            assert [name for name, _ in pair.reports] == [
                "test.urgent for worker-1",
                "test.watch for worker-1",
            ]

    run(main())


def test_an_answer_of_another_type_is_not_passed_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path, {Ask: lambda call, ask: Tell("?")}) as pair:
            with pytest.raises(RemoteFailed, match="answered with Tell"):
                await pair.peer.request(Ask("x"), Answer)

    run(main())


def test_too_much_at_once_is_refused_but_never_what_is_critical(tmp_path: Path) -> None:
    async def main() -> None:
        limits = Limits(in_flight_max=2)
        handlers = {Ask: never, Urgent: shout_later}
        async with connected(tmp_path, handlers, limits=limits) as pair:
            waiting = [
                pair.worker.tasks.spawn("ask", pair.peer.request(Ask("x"), Answer))
                for _ in range(2)
            ]
            await until(lambda: [c.in_flight()[1] for c in pair.server.connections] == [2])
            with pytest.raises(Refused, match="too many requests at once") as refused:
                await pair.peer.request(Ask("x"), Answer)
            assert refused.value.code == Reason.OVERLOADED
            assert refused.value.retry_after_s
            assert (await pair.peer.request(Urgent("still"), Answer)).text == "STILL"
            for task in waiting:
                task.cancel()
            await until(lambda: pair.server.connections[0].in_flight() == (0, 0))
            assert pair.server.connections[0].counts[Reason.OVERLOADED] == 1

    run(main())


def test_admission_decides_and_gets_its_slots_back(tmp_path: Path) -> None:
    class Door:
        inside = 0
        closed = False

        def enter(self, kind: Any, peer: Any) -> Denial | None:
            if self.closed:
                return Denial("overloaded", 0.7)
            self.inside += 1
            return None

        def leave(self, kind: Any, peer: Any) -> None:
            self.inside -= 1

    async def main() -> None:
        door = Door()
        handlers = {Ask: shout, Urgent: shout_later, Tell: never}
        async with connected(tmp_path, handlers, admission=door) as pair:
            await pair.peer.request(Ask("x"), Answer)
            await pair.peer.request(Urgent("x"), Answer)
            with pytest.raises(DeadlineExceeded):
                await pair.peer.request(Tell("x"), Answer, timeout_s=0.01)
            await until(lambda: door.inside == 0)
            door.closed = True
            with pytest.raises(Refused, match="overloaded") as refused:
                await pair.peer.request(Ask("x"), Answer)
            assert refused.value.retry_after_s == 0.7

    run(main())


def test_a_handler_that_judges_for_itself_is_not_behind_the_door(tmp_path: Path) -> None:
    class Shut:
        def enter(self, kind: Any, peer: Any) -> Denial | None:
            return Denial("overloaded", 0.7)

        def leave(self, kind: Any, peer: Any) -> None:
            raise AssertionError("nobody entered")

    def judge(call: Call, often: Often) -> Answer:
        if often.text == "no":
            raise Refused(call.kind.name, "too often", 0.3, Reason.OVERLOADED)
        return Answer(often.text)

    async def later(call: Call, often: Often) -> Answer:
        raise AssertionError("a task needs a slot")

    async def main() -> None:
        async with connected(tmp_path, {Often: judge}, admission=Shut()) as pair:
            assert await pair.peer.request(Often("yes"), Answer) == Answer("yes")
            with pytest.raises(Refused, match="too often") as refused:
                await pair.peer.request(Often("no"), Answer)
            assert refused.value.retry_after_s == 0.3
        async with connected(tmp_path, {Often: later}, admission=Shut()) as pair:
            with pytest.raises(Refused, match="overloaded"):
                await pair.peer.request(Often("yes"), Answer)

    run(main())


def test_updates_flow_until_their_end(tmp_path: Path) -> None:
    async def count(call: Call, watch: Watch) -> AsyncIterator[Tick]:
        for number in range(watch.count):
            yield Tick(number)

    async def main() -> None:
        async with connected(tmp_path, {Watch: count}) as pair:
            async with await pair.peer.subscribe(Watch(300), Tick, window=8) as ticks:
                assert [tick.number async for tick in ticks] == list(range(300))
            assert (await pair.peer.connection()).in_flight() == (0, 0)

    run(main())


def test_a_slow_reader_holds_the_sender_back(tmp_path: Path) -> None:
    made: list[int] = []
    closed = asyncio.Event()

    async def endless(call: Call, watch: Watch) -> AsyncIterator[Tick]:
        try:
            while True:
                made.append(len(made))
                yield Tick(len(made))
        finally:
            closed.set()

    async def main() -> None:
        async with connected(tmp_path, {Watch: endless, Ask: shout}) as pair:
            async with await pair.peer.subscribe(Watch(0), Tick, window=10) as ticks:
                await until(lambda: len(made) == 10)
                await pair.peer.request(Ask("others are not held up"), Answer)
                assert len(made) == 10
                for _ in range(5):
                    await anext(ticks)
                await until(lambda: len(made) == 15)
            await asyncio.wait_for(closed.wait(), 10)

    run(main())


def test_updates_that_cannot_be_had(tmp_path: Path) -> None:
    async def refuse(call: Call, watch: Watch) -> AsyncIterator[Tick]:
        yield Tick(1)
        raise Refused(call.kind.name, "gone")

    async def main() -> None:
        async with connected(tmp_path, {Watch: refuse, Ask: shout}) as pair:
            async with await pair.peer.subscribe(Watch(1), Tick) as ticks:
                assert (await anext(ticks)).number == 1
                with pytest.raises(Refused, match="gone"):
                    await anext(ticks)
            async with await pair.peer.subscribe(Ask("x"), Tick) as ticks:
                with pytest.raises(Refused, match="does not answer it"):
                    await anext(ticks)

    run(main())


def test_a_lost_connection_ends_everything_and_the_next_request_connects_again(
    tmp_path: Path,
) -> None:
    async def endless(call: Call, watch: Watch) -> AsyncIterator[Tick]:
        await asyncio.Event().wait()
        yield Tick(0)

    async def main() -> None:
        async with connected(tmp_path, {Ask: never, Watch: endless, Tell: shout}) as pair:
            asking = pair.worker.tasks.spawn("ask", pair.peer.request(Ask("x"), Answer))
            ticks = await pair.peer.subscribe(Watch(1), Tick)
            await until(lambda: [c.in_flight()[1] for c in pair.server.connections] == [2])
            pair.server.connections[0].close()
            with pytest.raises(Disconnected, match="manager-1 closed") as lost:
                await asking
            assert lost.value.maybe_done
            with pytest.raises(Disconnected):
                await anext(ticks)
            assert not pair.peer.connected
            assert (await pair.peer.request(Tell("again"), Answer)).text == "AGAIN"
            await until(lambda: len(pair.server.connections) == 1)
            pair.peer.close()
            with pytest.raises(Disconnected):
                await pair.peer.request(Tell("closed"), Answer)

    run(main())


def test_a_peer_that_is_closed_while_it_connects_stays_closed(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path, {Tell: shout}) as pair:
            asking = pair.worker.tasks.spawn("ask", pair.peer.request(Tell("x"), Answer))
            await asyncio.sleep(0)
            pair.peer.close()
            with pytest.raises(Disconnected, match="was closed"):
                await asking
            await until(lambda: not pair.server.connections)
            assert not pair.peer.connected

    run(main())


def test_pings(tmp_path: Path) -> None:
    async def main() -> None:
        limits = Limits(keepalive_s=0.01, keepalive_timeout_s=5)
        async with connected(tmp_path, {}, limits=limits) as pair:
            assert await pair.peer.ping() > 0
            await asyncio.sleep(0.1)
            assert pair.peer.connected

    run(main())


def test_a_silent_peer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        limits = Limits(keepalive_s=0.01, keepalive_timeout_s=0.05)
        async with connected(tmp_path, {Ask: never}, limits=limits) as pair:
            asking = pair.worker.tasks.spawn("ask", pair.peer.request(Ask("x"), Answer))
            await until(lambda: bool(pair.server.connections))
            (connection,) = pair.server.connections
            monkeypatch.setattr(connection.outbox, "put", lambda frame: None)
            with pytest.raises(Disconnected, match=r"does not answer pings|closed the connection"):
                await asking

    run(main())


def test_what_is_too_large_for_its_kind_is_refused_before_it_has_arrived(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path, {Small: shout, Ask: shout}) as pair:
            with pytest.raises(Refused, match="where 1,000 are allowed"):
                await pair.peer.request(Small("x" * 2000), Answer)
            lax = (await pair.peer.connection()).endpoint.registry
            object.__setattr__(lax.by_struct[Small], "max_bytes", 1_000_000)
            with pytest.raises(Refused, match="where 1,000 are allowed") as refused:
                await pair.peer.request(Small(noise(400_000)), Answer)
            assert refused.value.code == Reason.TOO_LARGE
            assert (await pair.peer.request(Ask("next"), Answer)).text == "NEXT"

    run(main())


def test_backpressure_reaches_the_sender(tmp_path: Path) -> None:
    """A peer that reads slowly makes `send` wait; nothing is lost and memory stays flat."""
    got = 0

    def listen(call: Call, tell: Tell) -> None:
        nonlocal got
        got += 1

    async def main() -> None:
        async with connected(tmp_path, {Tell: listen}) as pair:
            text = noise(100_000)
            connection = await pair.peer.connection()
            waited = False
            for number in range(200):
                waited = waited or connection.outbox.congested
                await pair.peer.send(Tell(f"{number}{text}"))
            await until(lambda: got == 200)
            assert waited

    run(main())


def test_stopping_with_work_in_flight_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path, {Ask: never}) as pair:
            asking = [
                pair.worker.tasks.spawn("ask", pair.peer.request(Ask("x"), Answer))
                for _ in range(10)
            ]
            await until(lambda: [c.in_flight()[1] for c in pair.server.connections] == [10])
            pair.server.close()
            for task in asking:
                with pytest.raises(Disconnected):
                    await task
            await until(lambda: not pair.server.connections)

    run(main())


def test_a_peer_that_asks_and_does_not_read_is_refused_and_then_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperscale.wire.outbox.STALLED_BYTES", 6 * 1024 * 1024)
    big = noise(300_000)

    async def main() -> None:
        handlers = {Ask: lambda call, ask: Answer(big)}
        async with connected(tmp_path, handlers) as pair:
            connection = await pair.peer.connection()
            monkeypatch.setattr(connection._stream, "data_received", lambda data: None)
            connection._stream._transport.pause_reading()  # type: ignore[attr-defined]
            await until(lambda: bool(pair.server.connections))
            (served,) = pair.server.connections

            async def ask() -> None:
                with pytest.raises(WireError):
                    await pair.peer.request(Ask("x" * 100), Answer, timeout_s=60)

            asking = [pair.worker.tasks.spawn("ask", ask()) for _ in range(100)]
            await until(lambda: served.counts.get(Reason.OVERLOADED, 0) > 0)
            assert not served.closed
            refusals = pack_plain(Verb.REQUEST, 1) * 1000
            async with asyncio.timeout(30):
                while not served.closed:
                    connection._stream.write(refusals)
                    await asyncio.sleep(0.001)
            connection.close()
            for task in asking:
                await task

    run(main())
