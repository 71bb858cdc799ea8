"""`hyperscale dev`: a cluster of real processes that a client finds, and that leaves nothing."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyperscale.errors import ExitCode
from tests.integration.cli.program import (
    DEADLINE_S,
    Running,
    assert_refused,
    hyperscale,
    write_workflow,
)


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody uses, and that no connection is given."""
    while True:
        first = random.randrange(10_000, 32_000, count)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


@contextmanager
def cluster(tmp_path: Path, *words: object) -> Iterator[tuple[Running, int]]:
    port = free_ports(4)
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}
    with Running("dev", "--port", port, "--cores", 1, *words, cwd=tmp_path, **env) as dev:
        dev.wait_until_said("\nready: ")
        yield dev, port


def processes(dev: Running) -> list[int]:
    return [int(pid) for pid in re.findall(r" process (\d+)$", dev.said, re.MULTILINE)]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(pids: list[int]) -> None:
    until = time.monotonic() + DEADLINE_S
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < until, "nodes are left"
        time.sleep(0.02)


def test_a_test_runs_on_it_by_naming_the_host_alone(tmp_path: Path, target: str) -> None:
    file = write_workflow(tmp_path, f"{target}/")
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    with cluster(tmp_path) as (dev, port):
        ended = hyperscale("run", file, "--cluster", "127.0.0.1", "-i", 30, cwd=tmp_path, **env)
        assert ended.code == ExitCode.PASSED, ended
        assert "✓ passed: 30 requests" in ended.out
        assert "30" in hyperscale("jobs", cwd=tmp_path, **env).out
        second = hyperscale("dev", "--port", port, cwd=tmp_path, **env)
        assert_refused(second, f"port {port}", code=1)
        dev.signal(signal.SIGINT)
        assert dev.ended().code == ExitCode.PASSED
        pids = processes(dev)
        assert len(pids) == 2
        assert not any(alive(pid) for pid in pids)
    assert list(tmp_path.glob("hyperscale-dev-*")) == []
    assert list((tmp_path / "hyperscale").iterdir()) == []


def test_nobody_outlives_it_and_its_traces_are_swept(tmp_path: Path) -> None:
    with cluster(tmp_path) as (dev, _):
        dev.signal(signal.SIGKILL)
        wait_until_gone(processes(dev))
        (left,) = tmp_path.glob("hyperscale-dev-*")
    with cluster(tmp_path, "--workers", 0) as (dev, _):
        assert not left.exists()
        dev.signal(signal.SIGTERM)
        assert dev.ended().code == ExitCode.PASSED


def test_a_node_that_dies_is_named_and_not_restarted(tmp_path: Path) -> None:
    with cluster(tmp_path, "--data", tmp_path / "kept") as (dev, _):
        manager, worker = processes(dev)
        os.kill(worker, signal.SIGKILL)
        dev.wait_until_said("w1  ended by SIGKILL; nobody restarts it")
        os.kill(manager, signal.SIGKILL)
        ended = dev.ended()
        assert ended.code == ExitCode.FAILED
        assert ended.errors == ["every node of the cluster has ended"]
    assert (tmp_path / "kept" / "m1").is_dir()


def test_numbers_that_make_no_sense(tmp_path: Path) -> None:
    assert_refused(hyperscale("dev", "--managers", 0, cwd=tmp_path), "--managers")
    assert_refused(hyperscale("dev", "--port", "x", cwd=tmp_path), "--port")
