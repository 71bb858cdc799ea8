"""The target as processes: who starts it, who stops it, and that none is left behind."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psutil
import pytest

from hyperscale.target import TargetProcess, running

DEADLINE = 20.0


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def served_by(url: str) -> int:
    client = http.client.HTTPConnection(urlsplit(url).netloc, timeout=DEADLINE)
    client.request("GET", "/stats")
    pid: int = json.loads(client.getresponse().read())["pid"]
    client.close()
    return pid


@contextmanager
def script(code: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_child_is_gone_after_the_block() -> None:
    with running() as url:
        pid = served_by(url)
        assert pid != os.getpid()
    assert gone(pid)


def test_the_child_is_gone_after_an_error_in_the_block() -> None:
    serving: list[int] = []

    def fail_within() -> None:
        with running() as url:
            serving.append(served_by(url))
            raise KeyError

    with pytest.raises(KeyError):
        fail_within()
    assert gone(serving[0])


def test_stop_and_kill_may_be_repeated() -> None:
    process = TargetProcess()
    assert process.alive
    process.stop()
    process.stop()
    process.kill()
    assert not process.alive


PARENT = """
import sys, time
from hyperscale.target import TargetProcess
target = TargetProcess()
sys.stdout.write(f"{target.pid}\\n"); sys.stdout.flush()
time.sleep(60)
"""


def test_the_child_does_not_outlive_a_killed_parent() -> None:
    with script(PARENT) as parent:
        pid = int(first_line(parent))
        assert not gone(pid)
        parent.send_signal(signal.SIGKILL)
        wait_until(lambda: gone(pid))


def test_ctrl_c_is_left_to_the_parent() -> None:
    with running() as url:
        pid = served_by(url)
        os.kill(pid, signal.SIGINT)
        assert served_by(url) == pid


SERVE = """
import sys
from hyperscale.target import serve_forever
def say(url, echo):
    sys.stdout.write(url + "\\n"); sys.stdout.flush()
serve_forever(port=0, workers={workers}, tls={tls}, on_ready=say)
sys.stdout.write("stopped\\n")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [1, 2])
def test_serving_until_a_signal(workers: int, number: signal.Signals) -> None:
    with script(SERVE.format(workers=workers, tls=False)) as server:
        url = first_line(server)
        serving: set[int] = set()

        def all_have_answered() -> bool:
            serving.add(served_by(url))
            return len(serving) == workers

        wait_until(all_have_answered)
        server.send_signal(number)
        out, err = server.communicate(timeout=DEADLINE)
        assert (out, err, server.returncode) == ("stopped\n", "", 0)
        wait_until(lambda: all(gone(pid) for pid in serving))


def test_several_workers_share_one_certificate() -> None:
    with script(SERVE.format(workers=2, tls=True)) as server:
        assert first_line(server).startswith("https://127.0.0.1:")
        server.send_signal(signal.SIGTERM)
        assert server.wait(DEADLINE) == 0


def test_two_servers_never_share_a_port_by_accident() -> None:
    taken = SERVE.format(workers=2, tls=False)
    with script(taken) as server:
        port = urlsplit(first_line(server)).port
        again = taken.replace("port=0", f"port={port}")
        done = subprocess.run(
            [sys.executable, "-c", again], capture_output=True, text=True, timeout=DEADLINE
        )
        assert f"Port {port} on 127.0.0.1 is already in use" in done.stderr


def test_a_dead_worker_ends_the_server_with_a_sentence() -> None:
    with script(SERVE.format(workers=2, tls=False)) as server:
        os.kill(served_by(first_line(server)), signal.SIGKILL)
        _, err = server.communicate(timeout=DEADLINE)
        assert server.returncode != 0
        assert "A worker process of the target died" in err
