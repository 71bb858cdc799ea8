"""Steps are ordinary asyncio code: its tools do with our calls what they do with any coroutine."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from hyperscale.clients import ClientPool
from hyperscale.engine.scope import UnmeasuredScope
from hyperscale.workload.responses import HTTPResponse

from .conftest import Run
from .scripted import Peer, Server, client, pool, response, serve, until
from .test_http_counted import counted

Loops = Callable[[], asyncio.AbstractEventLoop]
USER: ContextVar[str] = ContextVar("USER", default="nobody")


def path_of(request: bytes) -> bytes:
    return request.split(b" ")[1]


def echo(request: bytes) -> bytes:
    return response(path_of(request))


class Selective:
    """Echoes the path; `/silent` never gets an answer, `/half` half of one, `/deaf` is not read."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    async def __call__(self, peer: Peer) -> None:
        while head := await self._head(peer):
            path = path_of(head)
            self.seen.append(path)
            if path == b"/deaf":
                await asyncio.Event().wait()
            if path == b"/half":
                await peer.send(response(b"x" * 1000)[:500])
            if path in (b"/silent", b"/half"):
                await peer.gone()
                return
            await peer.send(echo(head))

    async def _head(self, peer: Peer) -> bytes:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            return await peer.reader.readuntil(b"\r\n\r\n")
        return b""


@contextlib.asynccontextmanager
async def selective() -> AsyncIterator[tuple[Selective, Server, ClientPool, UnmeasuredScope]]:
    """Server and pool; afterwards nothing of them is left, and both have counted the same."""
    behaviour = Selective()
    before = asyncio.all_tasks()
    async with serve(handler=behaviour) as server, pool() as made:
        scope = counted()
        yield behaviour, server, made, scope
        await until(lambda: scope.requests == len(behaviour.seen))
        assert not any(one.busy for one in made._http.connections)
    await until(lambda: not made._http.connections and asyncio.all_tasks() == before)


async def gives(call: Any, text: bytes) -> HTTPResponse:
    got: HTTPResponse = await call
    assert got.ok, got.error
    assert got.content == text
    return got


async def cancelled(task: asyncio.Task[Any]) -> bool:
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


def test_a_step_waits_and_calls_in_one_task(run_each_way: Run) -> None:
    async def go() -> None:
        async with serve(echo) as server, client() as vu:
            task = asyncio.current_task()
            USER.set("ann")
            for number in range(5):
                await asyncio.sleep(0.001)
                await gives(vu.http.get(f"{server.url}/{number}"), b"/%d" % number)
                assert asyncio.current_task() is task
                assert USER.get() == "ann"
                await asyncio.sleep(0)

    run_each_way(go())


def test_context_is_seen_by_gathered_calls_and_not_changed_by_them(run_each_way: Run) -> None:
    async def go() -> None:
        async with serve(echo) as server, client() as vu:

            async def call(number: int) -> str:
                seen = USER.get()
                USER.set(f"user {number}")
                await gives(vu.http.get(f"{server.url}/{number}"), b"/%d" % number)
                assert USER.get() == f"user {number}"
                return seen

            USER.set("ann")
            assert await asyncio.gather(*map(call, range(20))) == ["ann"] * 20
            assert USER.get() == "ann"

    run_each_way(go())


@pytest.mark.parametrize("kept", [False, True])
def test_a_timeout_before_during_and_after_a_call(run_each_way: Run, kept: bool) -> None:
    async def go() -> None:
        async with selective() as (_, server, made, scope):
            vu = made.client()
            if kept:
                await gives(vu.http.get(f"{server.url}/first"), b"/first")
            task = asyncio.current_task()
            assert task is not None
            for path in ("never", "silent", "half"):
                sent = scope.requests
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0 if path == "never" else 0.02):
                        await vu.http.get(f"{server.url}/{path}")
                assert path == "never" or scope.requests == sent + 1
            async with asyncio.timeout(5) as limit:
                await gives(vu.http.get(f"{server.url}/last"), b"/last")
            assert not limit.expired()
            assert not task.cancelling()

    run_each_way(go())


def test_wait_for(run_each_way: Run) -> None:
    async def go() -> None:
        async with selective() as (_, server, made, scope):
            vu = made.client()
            await gives(asyncio.wait_for(vu.http.get(f"{server.url}/a"), 5), b"/a")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(vu.http.get(f"{server.url}/silent"), 0.02)
            await gives(asyncio.wait_for(vu.http.get(f"{server.url}/b"), 5), b"/b")
            assert scope.requests == 3

    run_each_way(go())


def test_gathered_calls_come_in_order(run_each_way: Run) -> None:
    async def go() -> None:
        async with selective() as (_, server, made, _):
            vu = made.client()

            async def fails() -> None:
                raise ZeroDivisionError

            calls = (vu.http.get(f"{server.url}/{number}") for number in range(30))
            *answers, error = await asyncio.gather(*calls, fails(), return_exceptions=True)
            assert isinstance(error, ZeroDivisionError)
            assert [one.content for one in answers] == [b"/%d" % number for number in range(30)]

    run_each_way(go())


def test_a_task_group_takes_the_calls_of_its_tasks_with_it(run_each_way: Run) -> None:
    async def go() -> None:
        async with selective() as (behaviour, server, made, scope):
            vu = made.client()
            calls: list[asyncio.Task[HTTPResponse]] = []

            async def fails() -> None:
                await until(lambda: len(behaviour.seen) == 4)
                raise ZeroDivisionError

            async def together() -> None:
                async with asyncio.TaskGroup() as group:
                    silent = (vu.http.get(f"{server.url}/silent") for _ in range(4))
                    calls.extend(map(group.create_task, silent))
                    group.create_task(fails())

            with pytest.raises(ExceptionGroup) as raised:
                await together()
            assert isinstance(raised.value.exceptions[0], ZeroDivisionError)
            assert all(one.cancelled() for one in calls)
            assert scope.requests == 4
            await gives(vu.http.get(f"{server.url}/after"), b"/after")

    run_each_way(go())


STAGES: dict[str, tuple[str, bytes | None, int]] = {
    # its path, its body, how many requests were written
    "not yet written": ("/silent", None, 0),
    "half written": ("/deaf", b"x" * 10_000_000, 1),
    "waiting": ("/silent", None, 1),
    "half read": ("/half", None, 1),
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("stage", list(STAGES))
def test_a_call_is_cancelled(run_each_way: Run, stage: str, kept: bool) -> None:
    path, body, written = STAGES[stage]

    async def go() -> None:
        async with selective() as (behaviour, server, made, scope):
            vu = made.client()
            if kept:
                await gives(vu.http.get(f"{server.url}/first"), b"/first")
            call = asyncio.create_task(
                vu.http.post(server.url + path, data=body)
                if body
                else vu.http.get(server.url + path)
            )
            await asyncio.sleep(0)  # it has begun
            if stage != "not yet written":
                await until(lambda: behaviour.seen[-1:] == [path.encode()])
            if stage == "half written":
                (connection,) = made._http.connections
                assert connection.unsent is not None
            if stage == "half read":
                (connection,) = made._http.connections
                await until(lambda: connection._received > 0)
            assert await cancelled(call)
            # The event loop runs what was to be written before it tells the task.
            assert scope.requests - kept in ({0, 1} if kept and not written else {written})
            assert not made._http.connections
            await gives(vu.http.get(f"{server.url}/after"), b"/after")

    run_each_way(go())


def test_a_shielded_call_goes_on(run_each_way: Run) -> None:
    async def go() -> None:
        gate = asyncio.Event()

        async def handler(peer: Peer) -> None:
            request = await peer.request()
            await gate.wait()
            await peer.send(echo(request))

        async with serve(handler=handler) as server, client() as vu:
            scope = counted()
            call = asyncio.create_task(vu.http.get(f"{server.url}/kept"))
            outer = asyncio.ensure_future(asyncio.shield(call))
            await until(lambda: server.connections == 1)
            outer.cancel()
            await asyncio.wait([outer])
            assert outer.cancelled()
            gate.set()
            await gives(call, b"/kept")
            assert scope.requests == 1

    run_each_way(go())


@pytest.mark.parametrize("first", ["call", "queue"])
def test_a_call_and_a_queue_are_awaited_at_once(run_each_way: Run, first: str) -> None:
    async def go() -> None:
        async with selective() as (behaviour, server, made, _):
            vu = made.client()
            queue: asyncio.Queue[str] = asyncio.Queue()
            path = "/quick" if first == "call" else "/silent"
            call = asyncio.create_task(vu.http.get(server.url + path))
            item = asyncio.create_task(queue.get())
            if first == "queue":
                await until(lambda: len(behaviour.seen) == 1)
                queue.put_nowait("word")
            done, other = await asyncio.wait({call, item}, return_when=asyncio.FIRST_COMPLETED)
            assert done == {call if first == "call" else item}
            assert await cancelled(other.pop())
            queue.put_nowait("next")
            assert await queue.get() == "next"
            await gives(vu.http.get(f"{server.url}/after"), b"/after")

    run_each_way(go())


def test_one_call_has_two_who_await_it(run_each_way: Run) -> None:
    async def go() -> None:
        async with serve(echo) as server, client() as vu:
            scope = counted()
            call = asyncio.create_task(vu.http.get(f"{server.url}/one"))

            async def again() -> HTTPResponse:
                return await call

            one, other = await asyncio.gather(again(), again())
            assert one is other is await call
            assert scope.requests == len(server.requests) == 1

    run_each_way(go())


def test_threads_and_long_computations_beside_calls(run_each_way: Run) -> None:
    async def go() -> None:
        async with serve(echo) as server, client() as vu:
            loop = asyncio.get_running_loop()
            ready = threading.Event()

            async def call(number: int) -> None:
                for at in range(10):
                    path = f"/{number}/{at}"
                    sum(range(20_000))
                    await gives(vu.http.get(server.url + path), path.encode())
                ready.set()

            waited, *_ = await asyncio.gather(
                loop.run_in_executor(None, ready.wait, 10), *map(call, range(5))
            )
            assert waited

    run_each_way(go())


def test_tasks_that_nobody_holds_are_answered(run_each_way: Run) -> None:
    async def go() -> None:
        async with serve(echo) as server, client() as vu:
            answers: list[bytes] = []
            for number in range(20):
                task = asyncio.create_task(vu.http.get(f"{server.url}/{number}"))
                task.add_done_callback(lambda done: answers.append(done.result().content))
                del task
                gc.collect(0)
            for _ in range(3):
                await asyncio.sleep(0)
                gc.collect()
            await until(lambda: len(answers) == 20)
            assert set(answers) == {b"/%d" % number for number in range(20)}

    run_each_way(go())


def test_calls_in_generators_and_context_managers(run_each_way: Run) -> None:
    async def go() -> None:
        async with selective() as (behaviour, server, made, _):
            vu = made.client()

            async def pages() -> AsyncIterator[bytes]:
                try:
                    for number in range(10):
                        yield (await vu.http.get(f"{server.url}/page/{number}")).content
                finally:
                    await vu.http.get(f"{server.url}/pages/end")

            @contextlib.asynccontextmanager
            async def session() -> AsyncIterator[bytes]:
                login = await vu.http.get(f"{server.url}/login")
                try:
                    yield login.content
                finally:
                    await vu.http.get(f"{server.url}/logout")

            async def fails() -> None:
                async with session() as login:
                    assert login == b"/login"
                    async with contextlib.aclosing(pages()) as read:
                        async for page in read:
                            if page == b"/page/3":
                                break
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await fails()
            assert behaviour.seen[-2:] == [b"/pages/end", b"/logout"]
            assert behaviour.seen[1:5] == [b"/page/%d" % number for number in range(4)]

            async def waits() -> None:
                async with session():
                    await vu.http.get(f"{server.url}/silent")

            task = asyncio.create_task(waits())
            await until(lambda: behaviour.seen[-1] == b"/silent")
            assert await cancelled(task)
            assert behaviour.seen[-1] == b"/logout"

    run_each_way(go())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_loop_leaves_the_calls_of_others_whole(
    new_loop: Loops, error: type[BaseException]
) -> None:
    loop = new_loop()
    gate = asyncio.Event()
    calls: list[asyncio.Task[HTTPResponse]] = []
    arrived: list[bytes] = []

    async def handler(peer: Peer) -> None:
        while request := await peer.request():
            arrived.append(request)
            await gate.wait()
            await peer.send(echo(request))

    async def raises() -> None:
        await until(lambda: len(arrived) == 5)
        calls.append(asyncio.create_task(vu.http.get(f"{server.url}/5")))
        await asyncio.sleep(0)  # it is about to be written
        raise error

    async def start() -> None:
        calls.extend(asyncio.create_task(vu.http.get(f"{server.url}/{n}")) for n in range(5))
        ending = asyncio.create_task(raises())
        await asyncio.wait([ending])
        assert isinstance(ending.exception(), error)

    async def end() -> list[HTTPResponse]:
        gate.set()
        async with asyncio.timeout(10):
            await started
            return await asyncio.gather(*calls)

    stack = contextlib.AsyncExitStack()
    try:
        server = loop.run_until_complete(stack.enter_async_context(serve(handler=handler)))
        vu = loop.run_until_complete(stack.enter_async_context(client()))
        started = loop.create_task(start())
        with pytest.raises(error):
            loop.run_until_complete(started)
        answers = loop.run_until_complete(end())
        assert [one.content for one in answers] == [b"/%d" % number for number in range(6)]
    finally:
        loop.run_until_complete(stack.aclose())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
