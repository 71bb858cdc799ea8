"""Each executor with a real process or socket on this machine, and the registry."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors import registry
from hyperscale.scheduler.worker.executors.command import CommandExecutor
from hyperscale.scheduler.worker.executors.executor import Broken, Done, Executor, Result, Task
from hyperscale.scheduler.worker.executors.http import HttpExecutor
from hyperscale.scheduler.worker.executors.loadtest import LoadtestExecutor, _judged
from hyperscale.scheduler.worker.executors.orphans import Children
from hyperscale.scheduler.worker.executors.processes import Exited
from hyperscale.scheduler.worker.executors.python import PythonExecutor
from hyperscale.scheduler.worker.executors.reach import Reach
from tests.integration.clients.certificates import Authority

HERE = Reach(["127.0.0.1"])
OS_CALLS = [f"os:{name}" for name in ("getpid", "listdir", "no_such", "_exit")]


def task(**payload: str) -> Task:
    return Task(job_id="j-1", token=7, payload=payload, progress=lambda _: None)


def run(executor: Executor, *tasks: Task) -> list[Result]:
    async def all_of_them() -> list[Result]:
        try:
            async with asyncio.timeout(60):
                return [await executor.run(each) for each in tasks]
        finally:
            await executor.close()

    return asyncio.run(all_of_them())


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # between looks, until the deadline


def shell(script: str) -> str:
    return json.dumps(["sh", "-c", script])


def test_command_output_and_exit_code() -> None:
    done, bad, full = run(
        CommandExecutor(Children()),
        task(argv=shell("echo out; echo err >&2; echo $HYPERSCALE_FENCING_TOKEN")),
        task(argv=shell("exit 3")),
        task(argv=shell("exit 75")),
    )
    assert isinstance(done, Done)
    assert sorted(done.log.split()) == ["7", "err", "out"]
    assert isinstance(bad, Broken)
    assert (bad.failure, bad.exit_code) == (Failure.ERROR, 3)
    assert isinstance(full, Broken)
    assert full.failure is Failure.EXHAUSTED


@pytest.mark.parametrize("argv", ["", "[]", "not json", '["/no/such/program"]', '["a\\u0000b"]'])
def test_a_command_that_cannot_run_is_not_tried_again(argv: str) -> None:
    (result,) = run(CommandExecutor(Children()), task(argv=argv))
    assert isinstance(result, Broken)
    assert result.failure is Failure.PERMANENT


def test_command_log_is_bounded() -> None:
    (result,) = run(
        CommandExecutor(Children()),
        task(argv=json.dumps([sys.executable, "-c", "print('x' * 10**6); print('end')"])),
    )
    assert len(result.log) <= 64 * 1024 + 10
    assert result.log.endswith("end\n")


def test_cancelling_kills_the_whole_tree(tmp_path: Path) -> None:
    """Also a grandchild in a session of its own, which ignores SIGTERM."""
    pids = tmp_path / "pids"
    script = (
        f"echo $$ >> {pids}; "
        f"setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait' & "
        "wait"
    )

    def written() -> list[int]:
        return [int(line) for line in pids.read_text().split()] if pids.exists() else []

    async def cancelled() -> None:
        job = asyncio.create_task(CommandExecutor(Children()).run(task(argv=shell(script))))
        await asyncio.to_thread(wait_until, lambda: len(written()) == 3)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    asyncio.run(cancelled())
    for pid in written():
        wait_until(lambda pid=pid: gone(pid))  # type: ignore[misc]


def test_cancelling_twice_still_waits_for_the_end(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done"

    async def cancelled() -> None:
        job = asyncio.create_task(CommandExecutor(Children()).run(task(argv=shell(script))))
        await asyncio.to_thread(wait_until, lambda: pid.exists() and bool(pid.read_text()))
        for _ in range(3):
            job.cancel()
            await asyncio.sleep(0.1)
        with pytest.raises(asyncio.CancelledError):
            await job
        assert gone(int(pid.read_text()))

    asyncio.run(cancelled())


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid}; echo ok"
    (result,) = run(CommandExecutor(Children()), task(argv=shell(script)))
    assert isinstance(result, Done)
    assert result.log == "ok\n"
    wait_until(lambda: gone(int(pid.read_text())))


def test_python_calls_reuse_a_process() -> None:
    first, second, loud = run(
        PythonExecutor(["os:getpid", "builtins:print"], Children()),
        task(call="os:getpid"),
        task(call="os:getpid"),
        task(call="builtins:print", args='["hello"]'),
    )
    assert isinstance(first, Done)
    assert first.log == second.log
    assert first.log.strip() != str(os.getpid())
    assert loud.log == "hello\n"


def test_a_python_job_may_print_and_raise_what_is_no_text() -> None:
    """As `os.fsdecode` makes it of a file name that is no UTF-8."""
    printed, raised = run(
        PythonExecutor(["builtins:exec"], Children()),
        task(call="builtins:exec", args=json.dumps([r"print('caf\udce9.csv')"])),
        task(call="builtins:exec", args=json.dumps([r"raise ValueError('caf\udce9.csv')"])),
    )
    assert isinstance(printed, Done)
    assert printed.log == "caf\\udce9.csv\n"
    assert isinstance(raised, Broken)
    assert raised.error == "ValueError: caf\\udce9.csv"


@pytest.mark.parametrize(
    ("payload", "failure"),
    [
        ({"call": "subprocess:run"}, Failure.PERMANENT),
        ({"call": "os"}, Failure.PERMANENT),
        ({}, Failure.PERMANENT),
        ({"call": "os:no_such"}, Failure.PERMANENT),
        ({"call": "os:getpid", "args": "{"}, Failure.PERMANENT),
        ({"call": "os:listdir", "args": '["/no/such"]'}, Failure.ERROR),
        ({"call": "os:_exit", "args": "[5]"}, Failure.ERROR),
        ({"call": "socket:create_connection", "args": '[["127.0.0.1", 1]]'}, Failure.TRANSIENT),
    ],
)
def test_python_failures_by_class(payload: dict[str, str], failure: Failure) -> None:
    executor = PythonExecutor([*OS_CALLS, "socket:create_connection"], Children())
    result, after = run(executor, task(**payload), task(call="os:getpid"))
    assert isinstance(result, Broken)
    assert result.failure is failure
    assert isinstance(after, Done), "the next job is not disturbed"


def test_a_cancelled_python_job_takes_its_process_with_it() -> None:
    async def cancelled() -> None:
        executor = PythonExecutor(["os:getpid", "time:sleep"], Children())
        before = await executor.run(task(call="os:getpid"))
        job = asyncio.create_task(executor.run(task(call="time:sleep", args="[600]")))
        await asyncio.sleep(0.05)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        assert gone(int(before.log))
        after = await executor.run(task(call="os:getpid"))
        assert after.log != before.log
        await executor.close()
        assert gone(int(after.log))

    asyncio.run(cancelled())


Answering = Callable[[str], Awaitable[bytes]]


async def served(answer: bytes, payload: dict[str, str]) -> tuple[Result, bytes]:
    heard = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        heard = await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        result = await HttpExecutor(reach=HERE).run(
            task(url=f"http://127.0.0.1:{port}/a?b=c", **payload)
        )
    return result, heard


CHUNKED = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"


def answer_of(status: int) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: 4\r\n\r\nbody".encode()


@pytest.mark.parametrize(
    ("answer", "payload", "failure"),
    [
        (answer_of(200), {}, None),
        (answer_of(404), {"expect": "200,404"}, None),
        (answer_of(404), {}, Failure.PERMANENT),
        (answer_of(429), {}, Failure.ERROR),
        (answer_of(503), {}, Failure.ERROR),
        (b"", {}, Failure.TRANSIENT),
        (b"nonsense\r\n\r\n", {}, Failure.TRANSIENT),
        (answer_of(200)[:-1], {}, Failure.TRANSIENT),
        (answer_of(200)[:20], {}, Failure.TRANSIENT),
        (b"HTTP/1.1 200 X\r\n\r\nbody", {}, None),
        (CHUNKED, {}, None),
        (CHUNKED[:-5], {}, Failure.TRANSIENT),
        (answer_of(200), {"expect": "fine"}, Failure.PERMANENT),
        (answer_of(200), {"headers": '{"X": "a\\r\\nb"}'}, Failure.PERMANENT),
        (answer_of(200), {"timeout_s": "0"}, Failure.PERMANENT),
    ],
)
def test_http_by_status(answer: bytes, payload: dict[str, str], failure: Failure | None) -> None:
    result, heard = asyncio.run(served(answer, payload))
    if failure is None:
        assert isinstance(result, Done)
        assert result.log == "body"
        assert heard.startswith(b"GET /a?b=c HTTP/1.1\r\n")
        assert b"Hyperscale-Fencing-Token: 7" in heard
    else:
        assert isinstance(result, Broken)
        assert result.failure is failure


def test_http_answers_to_head_have_no_body() -> None:
    result, _ = asyncio.run(served(answer_of(200)[:-4], {"method": "HEAD"}))
    assert isinstance(result, Done), result


@pytest.mark.parametrize("url", ["http://h:99999/", "http://h:x/", "http://a..b/", "http://[::1/"])
def test_an_address_that_can_never_answer_is_not_tried_again(url: str) -> None:
    (result,) = run(HttpExecutor(reach=HERE), task(url=url))
    assert isinstance(result, Broken)
    assert result.failure is Failure.PERMANENT


def test_a_tls_server_that_hangs_costs_the_timeout_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A goodbye in good manners would wait half a minute for the other side's."""
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", authority.ca)
    silent = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        silent.set()

    async def served() -> Result:
        context = authority.server(authority.issue("hanging"))
        server = await asyncio.start_server(hang, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        async with server, asyncio.timeout(15):
            payload = {"url": f"https://127.0.0.1:{port}/", "timeout_s": "0.5"}
            return await HttpExecutor(reach=HERE).run(task(**payload))

    result = asyncio.run(served())
    assert silent.is_set()
    assert isinstance(result, Broken)
    assert result.error == "no answer within 0.5 s"


def test_http_without_a_server_or_an_address() -> None:
    refused, bad, missing = run(
        HttpExecutor(reach=HERE), task(url="http://127.0.0.1:1/"), task(url="ftp://x"), task()
    )
    assert isinstance(refused, Broken)
    assert refused.failure is Failure.TRANSIENT
    assert isinstance(bad, Broken)
    assert bad.failure is Failure.PERMANENT
    assert isinstance(missing, Broken)
    assert missing.failure is Failure.PERMANENT


def test_http_errors_and_logs_name_no_credentials() -> None:
    answer = b"HTTP/1.1 500 X\r\nContent-Length: 12\r\n\r\nnot abc12345"
    headers = json.dumps({"Authorization": "Bearer abc12345"})
    result, heard = asyncio.run(served(answer, {"headers": headers}))
    assert b"Bearer abc12345" in heard
    assert result.log == "not ***"
    refused, bad = run(
        HttpExecutor(reach=HERE),
        task(url="http://ada:hunter2@127.0.0.1:1/"),
        task(url="ftp://ada:hunter2@x"),
    )
    for broken in (refused, bad):
        assert isinstance(broken, Broken)
        assert "hunter2" not in broken.error


def test_loadtest_judges_exit_codes_and_refuses_flags_as_names() -> None:
    wanted = {0: None, 1: Failure.ERROR, 2: Failure.PERMANENT, 99: Failure.PERMANENT}
    for code, failure in wanted.items():
        result = _judged(Exited(code, "log"), '{"a":1}', None)
        assert result.log == '{"a":1}\nlog'
        assert getattr(result, "failure", None) is failure
    dashed, missing = run(LoadtestExecutor(Path(), Children()), task(file="--debug"), task())
    assert isinstance(dashed, Broken)
    assert dashed.failure is Failure.PERMANENT
    assert isinstance(missing, Broken)


def test_registry_knows_ours_and_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "mine", "package:Mine"

        def load(self) -> Callable[[], Executor]:
            return HttpExecutor

    monkeypatch.setattr(registry, "entry_points", lambda group: [Point()])
    assert list(registry.open_executors()) == ["http", "loadtest", "mine", "python"]
    assert "command" in registry.open_executors(command=True)
    Point.name = "command"
    with pytest.raises(BadInput):
        registry.open_executors()
