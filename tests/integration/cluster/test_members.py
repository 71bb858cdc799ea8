"""Seven real members on loopback: killed, stopped, restarted, leaving, and strangers refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 60.0


def free_ports(count: int) -> list[int]:
    """Ports free for both datagrams and streams."""
    held, ports = [], []
    while len(ports) < count:
        stream = socket.create_server(("127.0.0.1", 0))
        port = stream.getsockname()[1]
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        held += [stream, datagrams]
        try:
            datagrams.bind(("127.0.0.1", port))
        except OSError:
            continue
        ports.append(port)
    for opened in held:
        opened.close()
    return ports


class Process:
    def __init__(
        self, name: str, directory: Path, port: int, seeds: list[int], *flags: str
    ) -> None:
        self.name = name
        self.port = port
        self.lines: list[dict[str, Any]] = []
        self.view: dict[str, str] = {}
        self.refused: list[str] = []
        self.incarnation = 0
        module = "tests.integration.cluster.member_process"
        words = [sys.executable, "-m", module, name, str(directory), str(port)]
        self.popen = subprocess.Popen(
            [*words, *map(str, seeds), *flags], stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for text in self.popen.stdout:
            line = json.loads(text)
            self.view = line.get("view", self.view)
            self.refused = line.get("refused", self.refused)
            self.incarnation = line.get("incarnation", self.incarnation)
            self.lines.append(line)

    def changes(self, subject: str) -> list[str]:
        return [line["change"] for line in self.lines if line.get("subject") == subject]

    def end(self) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.kill()
        self.popen.wait()


class Cluster:
    def __init__(self, directory: Path, size: int) -> None:
        self.directory = directory
        self.ports = free_ports(size + 2)
        self.members: dict[str, Process] = {}
        self.everybody: list[Process] = []
        for number in range(size):
            self.start(f"m{number}", self.ports[number])

    def start(self, name: str, port: int, *flags: str) -> Process:
        home = self.directory / name
        home.mkdir(exist_ok=True)
        process = Process(name, home, port, self.ports[:2], *flags)
        self.members[name] = process
        self.everybody.append(process)
        return process

    def others(self, name: str) -> list[Process]:
        return [member for member in self.members.values() if member.name != name]

    def whole(self) -> bool:
        return all(
            member.view == {other.name: "ALIVE" for other in self.others(member.name)}
            for member in self.members.values()
        )

    def all_see(self, name: str, *states: str) -> bool:
        return all(member.view.get(name) in states for member in self.others(name))

    def end(self) -> None:
        for process in self.everybody:
            process.end()


def wait_for(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, 7)
    try:
        wait_for(made.whole, lambda: {m.name: m.view for m in made.members.values()})
        yield made
    finally:
        made.end()


def test_a_day_in_the_life_of_seven_members(cluster: Cluster) -> None:
    views = lambda: {m.name: m.view for m in cluster.members.values()}  # noqa: E731

    # kill -9: suspected, then dead, everywhere.
    victim = cluster.members["m6"]
    os.kill(victim.popen.pid, signal.SIGKILL)
    wait_for(lambda: cluster.all_see("m6", "DEAD"), views)
    assert any(m.changes("m6")[-2:] == ["suspected", "died"] for m in cluster.others("m6"))

    # The same name again: a higher incarnation, alive everywhere.
    before = victim.incarnation
    again = cluster.start("m6", cluster.ports[6])
    wait_for(cluster.whole, views)
    assert again.incarnation > before

    # Stopped long enough to be buried, then continued: it refutes and buries nobody.
    frozen = cluster.members["m5"]
    os.kill(frozen.popen.pid, signal.SIGSTOP)
    wait_for(lambda: cluster.all_see("m5", "DEAD"), views)
    heard = len(frozen.lines)
    os.kill(frozen.popen.pid, signal.SIGCONT)
    wait_for(cluster.whole, views)
    after = [line for line in frozen.lines[heard:] if line.get("change") == "died"]
    assert [line for line in after if line["via"] == "own suspicion ran out"] == []

    # Leaving politely is final and leaves no task behind.
    leaver = cluster.members["m4"]
    leaver.popen.send_signal(signal.SIGTERM)
    assert leaver.popen.wait(DEADLINE_S) == 0
    wait_for(lambda: cluster.all_see("m4", "LEFT"), views)
    wait_for(lambda: "stopped" in leaver.lines[-1], lambda: leaver.lines[-1])
    assert leaver.lines[-1]["tasks"] == []


def test_strangers_stay_out(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2)
    try:
        wait_for(cluster.whole, lambda: {m.name: m.view for m in cluster.members.values()})
        home = tmp_path / "stranger"
        home.mkdir()
        stranger = Process("stranger", home, cluster.ports[-1], cluster.ports[:2], "--cluster", "x")
        cluster.everybody.append(stranger)
        wait_for(
            lambda: any(
                "refused_cluster" in m.refused for m in [*cluster.members.values(), stranger]
            ),
            lambda: [m.refused for m in cluster.members.values()],
        )
        assert cluster.whole()
    finally:
        cluster.end()
