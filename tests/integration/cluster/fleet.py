"""A whole cluster of real processes, started, asked, hurt, and ended with nothing left: on
loopback, or each in the network namespace that a `Place` names.

Nodes are `hyperscale manager` and `hyperscale worker` as an operator starts them, with throw-away
certificates or in plaintext. Questions go through the client's own code; commands through the
`hyperscale` program.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil

from hyperscale.errors import HyperscaleError
from hyperscale.nodes.client.client import connect
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.settings import read_cluster
from hyperscale.nodes.protocol.jobs import JobView, WorkerViews
from hyperscale.runtime.real import RealHost
from hyperscale.wire.certificates import CertificateIdentity, make_authority, make_node
from tests.fixtures.private import write_private
from tests.integration.cli.program import Ended, Running, environment, hyperscale

# For a machine with many times more to do than cores; a quiet one needs a tenth.
DEADLINE_S = 90.0
ASK_EVERY_S = 0.15  # a manager answers one client a hundred times in ten seconds
CLUSTER, ENV, DC = "default", "dev", "local"
# Below those the kernel gives to outgoing connections, which load makes many of.
PORTS = range(20_000, 32_000)

# A few times faster than life, and still patient with a starved process.
ELECTION = (
    "election.heartbeat_interval_s=0.25",
    "election.lease_s=1.5",
    "election.election_delay_min_s=1.5",
    "election.election_delay_max_s=2.5",
    "election.ballot_timeout_s=1.0",
    "election.retry_delay_min_s=0.2",
    "election.retry_delay_max_s=0.8",
)
MEMBERSHIP = (
    "membership.probe_interval_s=0.4",
    "membership.probe_timeout_s=0.2",
    "membership.gossip_interval_s=0.05",
    "membership.reconnect_interval_s=0.5",
    "membership.seed_retry_s=0.2",
    "membership.seed_retry_max_s=1.0",
    "membership.leave_s=1.0",
)

# The environment of workers whose test code may write where the test can read it.
OPEN = {"HYPERSCALE_WORKER_SANDBOX": "off"}

T = TypeVar("T")


def until(condition: Callable[[], T], what: str, deadline_s: float = DEADLINE_S) -> T:
    """Wait for something in another process, which has no event to wait for."""
    end = time.monotonic() + deadline_s
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {deadline_s:g} s in vain for: {what}"
        time.sleep(ASK_EVERY_S)
    return found


def free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagram:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                stream.bind(("127.0.0.1", port))
                datagram.bind(("127.0.0.1", port))
                return port


class Place(Protocol):
    """Where nodes live: the address of each, and the command that runs a program there."""

    def host(self, name: str) -> str: ...

    def inside(self, name: str) -> Sequence[str]: ...


class Loopback:
    def host(self, name: str) -> str:
        return "127.0.0.1"

    def inside(self, name: str) -> Sequence[str]:
        return ()


class NodeProcess:
    """One node: how it is started, and started again."""

    def __init__(
        self,
        name: str,
        role: str,
        port: int,
        folder: Path,
        words: Sequence[str],
        place: Place | None = None,
    ) -> None:
        place = place or Loopback()
        self.name = name
        self.role = role
        self.port = port
        self._inside = place.inside(name)
        self.log = folder / f"{name}.log"
        self.env: dict[str, str] = {}
        self.program: Sequence[str] = ("-m", "hyperscale")
        self._folder = folder
        self._words = [
            *(role, "--id", name, "--bind", f"{place.host(name)}:{port}"),
            *("--data", str(folder / name), "--log", str(self.log)),
            *words,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / f"{self.name}.said").open("ab") as said:
            self._process = subprocess.Popen(
                [*self._inside, sys.executable, *self.program, *self._words],
                cwd=self._folder,
                env=environment(**self.env),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def said(self) -> str:
        """What it printed; a node that works prints nothing."""
        return (self._folder / f"{self.name}.said").read_text()

    def logged(self, event: str) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines if line.startswith("{") and line[-1] == "}"]
        return [line for line in found if line.get("event") == event]

    def signal(self, number: int) -> None:
        assert self._process is not None, f"{self.name} was not started"
        self._process.send_signal(number)

    def kill(self) -> None:
        """As a crash of the machine: it and its children, nobody says goodbye."""
        children = self.children()
        self.signal(signal.SIGKILL)
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self.exit_code()

    def children(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def exit_code(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.wait(DEADLINE_S)

    def end(self) -> None:
        if self.alive:
            for process in (psutil.Process(self.pid), *self.children()):
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)
            self.kill()


class Asker:
    """The client's code on a thread of its own, for tests that wait for what a cluster says."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self._flags = flags
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._host: RealHost | None = None
        self._cluster: Cluster | None = None

    def ask(self, question: Callable[[Cluster], Awaitable[T]]) -> T:
        async def asking() -> T:
            if self._cluster is None:
                self._host = RealHost("client", os.devnull)
                self._cluster = connect(self._host, read_cluster(self._flags, {}, {}))
            return await question(self._cluster)

        return self._run(asking())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_S)

    def close(self) -> None:
        async def closing() -> None:
            if self._cluster is not None and self._host is not None:
                self._cluster.managers.close()
                await self._host.stop()

        self._run(closing())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.close()


class Fleet:
    """`start()` brings up all that was added; the end of the `with` block ends all of it."""

    def __init__(
        self,
        folder: Path,
        *,
        managers: int = 1,
        workers: int = 1,
        cores: int = 1,
        tls: bool = False,
        worker_env: dict[str, str] | None = None,
        advertise: dict[str, str] | None = None,
        place: Place | None = None,
    ) -> None:
        self.folder = folder
        self._place = place or Loopback()
        self.nodes: dict[str, NodeProcess] = {}
        self._tls = tls
        self._cores = cores
        self._worker_env = worker_env or {}
        self._advertise = advertise or {}
        self._voters = [f"m{number}" for number in range(1, managers + 1)]
        self._ports = {name: free_port() for name in self._voters}
        if tls:
            self.certs = folder / "certs"
            self._authority = make_authority(CLUSTER)
            self.certify("client", "client", groups=("operators",))
            write_private(folder / "secret", "correct horse battery staple")
            write_private(folder / "manager-secret", "another horse for managers alone")
        for name in self._voters:
            self._add_manager(name)
        for number in range(1, workers + 1):
            self.add_worker(f"w{number}")
        self.asker = Asker({"manager": self.addresses, "certs": str(self.certs) if tls else ""})

    # -- who there is ------------------------------------------------------------------------

    def certify(
        self, name: str, role: str, authority: Any = None, groups: tuple[str, ...] = ()
    ) -> None:
        """A certificate of our authority, or of another one."""
        self.certs.mkdir(exist_ok=True)
        issuer = authority or self._authority
        own = self._place.host(name)
        hosts = list(dict.fromkeys([own, self._advertise.get(name, own)]))
        identity = CertificateIdentity(role, CLUSTER, ENV, DC, groups=groups)
        made = make_node(issuer, identity, name, hosts)
        (self.certs / "ca.pem").write_bytes(self._authority.certificate)
        (self.certs / f"{name}.pem").write_bytes(made.certificate)
        (self.certs / f"{name}-key.pem").write_bytes(made.key)

    def _common(self, name: str, role: str) -> list[str]:
        words = ["--cluster", CLUSTER, "--env", ENV, "--log-level", "info"]
        words += [
            f"--seed={self._advertise.get(manager, self._place.host(manager))}:{port}"
            for manager, port in self._ports.items()
        ]
        words += [f"--set={setting}" for setting in MEMBERSHIP]
        if name in self._advertise:
            words += ["--advertise", self._advertise[name]]
        if not self._tls:
            return [*words, "--plaintext"]
        self.certify(name, role)
        return [*words, "--certs", str(self.certs), "--secret-file", str(self.folder / "secret")]

    def _add_manager(self, name: str) -> NodeProcess:
        words = [*self._common(name, "manager"), "--voters", ",".join(self._voters)]
        words += [f"--set={setting}" for setting in ELECTION]
        if self._tls:
            words += ["--manager-secret-file", str(self.folder / "manager-secret")]
        port = self._ports[name]
        return self._add(NodeProcess(name, "manager", port, self.folder, words, self._place))

    def add_worker(self, name: str, *words: str, cores: int = 0) -> NodeProcess:
        own = [*self._common(name, "worker"), "--cores", str(cores or self._cores), *words]
        made = NodeProcess(name, "worker", free_port(), self.folder, own, self._place)
        node = self._add(made)
        node.env = dict(self._worker_env)
        return node

    def add_gate(self, name: str) -> NodeProcess:
        """The only one, before the one datacenter."""
        where = f"--datacenter={DC}={self.addresses[0]}"
        own = [*self._common(name, "gate"), "--gates", name, where]
        return self._add(NodeProcess(name, "gate", free_port(), self.folder, own, self._place))

    def _add(self, node: NodeProcess) -> NodeProcess:
        self.nodes[node.name] = node
        return node

    def __getitem__(self, name: str) -> NodeProcess:
        return self.nodes[name]

    @property
    def managers(self) -> list[NodeProcess]:
        return [node for node in self.nodes.values() if node.role == "manager"]

    @property
    def workers(self) -> list[NodeProcess]:
        return [node for node in self.nodes.values() if node.role == "worker"]

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(f"{self._place.host(name)}:{port}" for name, port in self._ports.items())

    # -- life --------------------------------------------------------------------------------

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.asker.close()
        for node in self.nodes.values():
            node.end()

    def start(self) -> Fleet:
        for node in self.nodes.values():
            if not node.alive:
                node.start()
        self.wait_for_workers(*(node.name for node in self.workers))
        return self

    def wait_for_workers(self, *names: str) -> WorkerViews:
        def there() -> WorkerViews | None:
            for node in self.nodes.values():
                assert node.alive or not node.said, f"{node.name}: {node.said}"
            views = self.try_to(lambda cluster: cluster.workers(within_s=2.0))
            known = {one.worker for one in views.workers} if views is not None else set()
            return views if views is not None and views.leader and known >= set(names) else None

        found = until(there, f"a leader with {names}")
        assert found is not None
        return found

    # -- asking ------------------------------------------------------------------------------

    def ask(self, question: Callable[[Cluster], Awaitable[T]]) -> T:
        return self.asker.ask(question)

    def try_to(self, question: Callable[[Cluster], Awaitable[T]]) -> T | None:
        """None while nobody can answer."""
        try:
            return self.ask(question)
        except HyperscaleError:
            return None

    def leader(self) -> NodeProcess:
        return self[self.wait_for_workers().leader]

    def job(self, job_id: str) -> JobView:
        return self.ask(lambda cluster: cluster.job(job_id))

    def only_job(self) -> JobView:
        (view,) = until(lambda: self.ask(lambda cluster: cluster.jobs()).jobs, "a job")
        return view

    def wait_for_job(
        self, job_id: str, condition: Callable[[JobView], object], what: str
    ) -> JobView:
        def met() -> JobView | None:
            view = self.try_to(lambda cluster: cluster.job(job_id))
            return view if view is not None and condition(view) else None

        found = until(met, f"job {job_id} {what}")
        assert found is not None
        return found

    def wait_until_running(self, job_id: str, requests: int = 1) -> JobView:
        return self.wait_for_job(
            job_id, lambda view: sum(w.requests for w in view.workflows) >= requests, "makes load"
        )

    def wait_for_end(self, job_id: str) -> JobView:
        return self.wait_for_job(job_id, lambda view: view.exit_code is not None, "ends")

    def results(self, job_id: str) -> dict[str, Any]:
        answer = self.ask(lambda cluster: cluster.results(job_id))
        assert answer.results, f"job {job_id} has no results: {answer.status}"
        decoded: dict[str, Any] = json.loads(answer.results)
        return decoded

    def wait_until_idle(self) -> None:
        """Every core is free again, and no generator is at work."""

        def idle() -> bool:
            views = self.try_to(lambda cluster: cluster.workers())
            return views is not None and views.free_cores == views.total_cores

        until(idle, "all cores free")

    # -- the program -------------------------------------------------------------------------

    @property
    def there(self) -> tuple[object, ...]:
        """The options of `run` that send it to this cluster."""
        named = [word for address in self.addresses for word in ("--cluster", address)]
        return (*named, "--certs", self.certs) if self._tls else tuple(named)

    def hyperscale(self, *words: object, **env: str) -> Ended:
        return hyperscale(*words, cwd=self.folder, **self._env(env))

    def running(self, *words: object, **env: str) -> Running:
        return Running(*words, cwd=self.folder, **self._env(env))

    def program(self, file: Path, **env: str) -> str:
        """What a Python program prints that finds this cluster in its environment."""
        command = [sys.executable, str(file)]
        ended = subprocess.run(
            command, env=environment(**self._env(env)), capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def detached(self, file: Path, *words: object) -> str:
        """Submit and leave; the job's id."""
        ended = self.hyperscale("submit", file, "--detach", *words)
        assert ended.code == 0, ended
        return ended.out.strip()

    def _env(self, more: dict[str, str]) -> dict[str, str]:
        where = {"HYPERSCALE_CLUSTER_MANAGER": ",".join(self.addresses)}
        if self._tls:
            where["HYPERSCALE_CLUSTER_CERTS"] = str(self.certs)
        return where | {"XDG_RUNTIME_DIR": str(self.folder)} | more
