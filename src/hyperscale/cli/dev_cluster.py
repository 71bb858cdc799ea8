"""The life of a dev cluster: a private place, credentials, processes, ready, the end of all."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hyperscale.cli import streams
from hyperscale.cli.dev_links import names_in
from hyperscale.cli.dev_nodes import DevNode, DevProcess, DevRelay, Lifeline, preload
from hyperscale.cli.serving import read_or_show
from hyperscale.errors import BadInput, HyperscaleError, RunFailed
from hyperscale.nodes.client import dev_file
from hyperscale.nodes.client.client import connect
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.settings import ClusterSettings, identity_from
from hyperscale.nodes.protocol.jobs import WorkerViews
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost, run
from hyperscale.wire.certificates import CertificateIdentity, Pem, make_authority, make_node

T = TypeVar("T")

CLUSTER = "dev"
READY_S = 60.0
LOOK_S = 0.05
ASK_S = 0.5
LEAVE_S = 6.0  # after the first signal; then they are told to leave at once,
HURRY_S = 2.0  # and then ended

# Everybody is on one machine: a lease below a second loses nothing, and the first leader is there
# that much sooner. The rules of the election demand these proportions.
ELECTION = {
    "heartbeat_interval_s": 0.2,
    "lease_s": 0.8,
    "election_delay_min_s": 0.8,
    "election_delay_max_s": 1.2,
    "ballot_timeout_s": 0.6,
    "retry_delay_min_s": 0.2,
    "retry_delay_max_s": 0.6,
}
MEMBERSHIP = {"seed_retry_s": 0.2, "leave_s": 1.0}
# Ctrl-C is not patient with a test that still runs.
WORKER = {"HYPERSCALE_WORKER_DRAIN_S": "1"}


# The same for gates, whose leases outlive a round trip between continents.
DATACENTER_LOST_S = 10.0
TOTALS_S = 1.0
LEDGER = {"lease_s": 2.0, "heartbeat_s": 0.5, "retry_s": 0.3, "view_change_s": 2.0}


class Ports(NamedTuple):
    port: int
    page: int
    outer: int  # what others are told: of the process that delays, where there is one

    @property
    def told(self) -> str:
        return f"127.0.0.1:{self.outer}"


@dataclass(frozen=True, slots=True)
class Plan:
    """`managers` and `workers` are those of each datacenter."""

    managers: int
    workers: int
    cores: int
    port: int
    data: Path | None = None
    datacenters: int = 1
    gates: int = 0
    wan: str = ""  # how far the datacenters are from each other; empty: nothing is between them

    @property
    def names(self) -> list[str]:
        if not self.gates:
            return ["local"]
        numbered = [f"dc{number}" for number in range(1, self.datacenters + 1)]
        named = names_in(self.wan)
        if set(named) <= set(numbered):
            return numbered
        if len(named) != self.datacenters:
            raise BadInput(
                f"--wan names {', '.join(named)}, and --datacenters says {len(numbered)}"
            )
        return named

    def nodes(self, folder: Path) -> list[DevNode]:
        """Gates first, then one datacenter after the other."""
        in_each = self.managers + self.workers
        count = self.gates + in_each * len(self.names)
        first = self.port
        places = [
            Ports(
                first + number,
                first + count + number,
                first + (2 * count if self.wan else 0) + number,
            )
            for number in range(count)
        ]
        made = self._gates(folder, places)
        for number, dc in enumerate(self.names):
            first = self.gates + number * in_each
            made += self._datacenter(folder, dc, places[first : first + in_each])
        return made

    def _gates(self, folder: Path, places: list[Ports]) -> list[DevNode]:
        names = [f"g{number}" for number in range(1, self.gates + 1)]
        words = [f"--seed={place.told}" for place in places[: self.gates]]
        words += ["--gates", ",".join(names)]
        words += [f"--set=ledger.{name}={value}" for name, value in LEDGER.items()]
        words += [
            f"--set=gate.datacenter_lost_s={DATACENTER_LOST_S:g}",
            f"--set=gate.totals_s={TOTALS_S:g}",
        ]
        in_each = self.managers + self.workers
        for number, dc in enumerate(self.names):
            first = self.gates + number * in_each
            managers = places[first : first + self.managers]
            words += [f"--datacenter={dc}={place.told}" for place in managers]
        return [
            self._node(folder, name, "gate", self.names[number % len(self.names)], place, words)
            for number, (name, place) in enumerate(zip(names, places, strict=False))
        ]

    def _datacenter(self, folder: Path, dc: str, places: list[Ports]) -> list[DevNode]:
        before = f"{dc}-" if self.gates else ""
        managers = [f"{before}m{number}" for number in range(1, self.managers + 1)]
        workers = [f"{before}w{number}" for number in range(1, self.workers + 1)]
        seeds = [f"--seed={place.told}" for place in places[: self.managers]]
        voting = [*seeds, "--voters", ",".join(managers)]
        voting += ["--manager-secret-file", str(folder / "manager-secret")]
        voting += [f"--set=election.{name}={value}" for name, value in ELECTION.items()]
        working = [*seeds, "--cores", str(self.cores)]
        roles = [*((name, "manager", voting) for name in managers)]
        roles += [(name, "worker", working) for name in workers]
        return [
            self._node(folder, name, role, dc, place, words)
            for (name, role, words), place in zip(roles, places, strict=True)
        ]

    def _node(
        self, folder: Path, name: str, role: str, dc: str, place: Ports, own: list[str]
    ) -> DevNode:
        """All that must hold here is said, whatever a hyperscale.toml of this directory says."""
        words = ["--cluster", CLUSTER, "--env", "dev"]
        words += ["--advertise", place.told, "--certs", str(folder / "certs")]
        words += ["--secret-file", str(folder / "secret"), "--log-level", "info"]
        words += [f"--set=membership.{one}={value}" for one, value in MEMBERSHIP.items()]
        words += ["--data", str(folder / name), "--log", str(folder / f"{name}.log"), *own]
        page = f"127.0.0.1:{place.page}"
        return DevNode(name, role, place.port, page, words, dc, place.outer)


def carry_on(plan: Plan) -> None:
    """Start everything, say when it is ready, wait for a signal, end everything."""
    sweep()
    folder = plan.data or Path(tempfile.mkdtemp(prefix="hyperscale-dev-"))
    nodes = plan.nodes(folder)
    word = _word(plan, folder, nodes)
    lifeline = Lifeline()
    relays: list[DevProcess] = []
    try:
        check_ports(nodes)
        make_credentials(folder, nodes)
        preload()
        check_settings(nodes)
        streams.note(f"starting {_counted(plan)} in {folder}")
        for node in nodes:
            node.start(lifeline, WORKER)
            streams.note(f"{node.name:<7}127.0.0.1:{node.port}  process {node.pid}")
        if plan.wan:
            relay = DevRelay(folder / "wan", plan.wan, plan.names, nodes)
            relay.start(lifeline, WORKER)
            streams.note(f"{relay.name:<7}change or cut its links in {folder / 'wan'}")
            relays.append(relay)
        dev_file.write(word, os.environ)
        run(_look_after(plan, folder, nodes, relays))
    finally:
        for process in (*nodes, *relays):
            process.signal(signal.SIGKILL)
        lifeline.close()
        dev_file.remove(word, os.environ)
        if plan.data is None:
            shutil.rmtree(folder, ignore_errors=True)


async def _look_after(
    plan: Plan, folder: Path, nodes: list[DevNode], relays: list[DevProcess]
) -> None:
    signals: asyncio.Queue[int] = asyncio.Queue()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    listening = [asyncio.create_task(node.listen(streams.note)) for node in nodes]
    beside = [asyncio.create_task(relay.listen(streams.note)) for relay in relays]
    told = asyncio.create_task(signals.get())
    ready = asyncio.create_task(until_ready(plan, folder, nodes))
    try:
        await asyncio.wait([told, ready], return_when=asyncio.FIRST_COMPLETED)
        if not told.done():
            streams.note(await ready)
            waited_for: list[asyncio.Future[Any]] = [told, asyncio.gather(*listening)]
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        if not told.done():
            raise RunFailed("every node of the cluster has ended", "what they said is above")
    finally:
        ready.cancel()
        await end(nodes, signals)
        for relay in relays:  # nodes have told each other through it that they leave
            relay.signal(signal.SIGKILL)
        await asyncio.gather(ready, *listening, *beside, return_exceptions=True)
        told.cancel()


async def until_ready(plan: Plan, folder: Path, nodes: list[DevNode]) -> str:
    """A leader is there and every worker has registered with it, in each datacenter; every gate
    answers. What to say then."""
    credentials, identity = identity_from(str(folder / "certs"), "client", CLUSTER, "dev")

    def settings_of(*meant: DevNode) -> ClusterSettings:
        addresses = tuple(Address("127.0.0.1", node.port) for node in meant)
        return ClusterSettings(managers=addresses, identity=identity, credentials=credentials)

    async with RealHost("client", os.devnull) as host:
        deadline = host.clock.now() + READY_S
        leaders, cores = [], 0
        for dc in plan.names:
            managers = [node for node in nodes if node.role == "manager" and node.dc == dc]
            cluster = connect(host, settings_of(*managers))
            answer = await _until_done(host, nodes, deadline, partial(_registered, cluster, plan))
            leaders.append(answer.leader)
            cores += answer.total_cores
            cluster.managers.close()
        for gate in (node for node in nodes if node.role == "gate"):
            cluster = connect(host, settings_of(gate))
            await _until_done(host, nodes, deadline, partial(cluster.jobs, within_s=ASK_S))
            cluster.managers.close()
        return _ready(plan, nodes, leaders, cores)


async def _registered(cluster: Cluster, plan: Plan) -> WorkerViews:
    answer = await cluster.workers(within_s=ASK_S)
    missing = plan.workers - len(answer.workers)
    if missing > 0 or not answer.leader:
        raise RunFailed(f"{missing} of {plan.workers} workers have not registered")
    return answer


async def _until_done(
    host: RealHost, nodes: list[DevNode], deadline: float, attempt: Callable[[], Awaitable[T]]
) -> T:
    while True:
        complain_of_the_dead(nodes)
        try:
            return await attempt()
        except HyperscaleError as error:
            if host.clock.now() > deadline:
                raise RunFailed(
                    f"the cluster is not ready after {READY_S:g} s: {error.message}"
                ) from None
        await host.clock.sleep(LOOK_S)


def complain_of_the_dead(nodes: list[DevNode]) -> None:
    for node in nodes:
        if node.pid and not node.running:
            said = f"said: {' '.join(node.said)}" if node.said else "said nothing"
            raise RunFailed(f"the cluster could not start: {node.name} ended and {said}")


async def end(nodes: list[DevNode], signals: asyncio.Queue[int]) -> None:
    """In good order; another signal, or dawdling, shortens it."""
    if any(node.running for node in nodes):
        streams.note("ending all nodes; once more ends them at once")
    for number, seconds in (
        (signal.SIGTERM, LEAVE_S),
        (signal.SIGTERM, HURRY_S),
        (signal.SIGKILL, HURRY_S),
    ):
        for node in nodes:
            node.signal(number)
        until = asyncio.get_running_loop().time() + seconds
        while any(node.running for node in nodes) and signals.empty():
            if asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(LOOK_S)
        while not signals.empty():
            signals.get_nowait()


def sweep() -> None:
    """Tidy up after dev clusters that were killed."""
    for cluster in dev_file.dead(os.environ):
        if not cluster.kept:
            shutil.rmtree(cluster.directory, ignore_errors=True)
        dev_file.remove(cluster, os.environ)


def check_ports(nodes: list[DevNode]) -> None:
    wanted = [
        (node.port, kind) for node in nodes for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)
    ]
    outer = [node.outer_port for node in nodes if node.outer_port != node.port]
    wanted += [(port, kind) for port in outer for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
    wanted += [(int(node.page.rpartition(":")[2]), socket.SOCK_STREAM) for node in nodes]
    for port, kind in wanted:
        with socket.socket(socket.AF_INET, kind) as probe:
            if kind is socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise RunFailed(
                    f"port {port} of this machine cannot be used: {error.strerror}",
                    "another cluster may run already; --port N starts this one elsewhere",
                ) from error


def check_settings(nodes: list[DevNode]) -> None:
    """What is wrong with the file or the environment is said once, and not by every node."""
    from hyperscale.nodes.gate import settings as gate
    from hyperscale.nodes.manager import settings as manager
    from hyperscale.nodes.worker import settings as worker

    for role, sections, check in (
        ("gate", gate.SECTIONS, gate.gate_settings),
        ("manager", manager.SECTIONS, manager.manager_settings),
        ("worker", worker.sections(), worker.worker_settings),
    ):
        for node in [node for node in nodes if node.role == role][:1]:
            read_or_show(node.flags(), sections, check)


def make_credentials(folder: Path, nodes: list[DevNode]) -> None:
    """An authority, a certificate for each node and one for clients, two secrets. The
    authority's own key is not kept."""
    certs = folder / "certs"
    shutil.rmtree(certs, ignore_errors=True)
    certs.mkdir(mode=0o700, parents=True)
    authority = make_authority(CLUSTER)
    _write(certs / "ca.pem", authority.certificate)
    wanted = [(node.role, node.dc, node.name) for node in nodes]
    for role, dc, name in [*wanted, ("client", "local", "client")]:
        groups = ("operators",) if role == "client" else ()
        identity = CertificateIdentity(role, CLUSTER, "dev", dc, groups=groups)
        pem: Pem = make_node(authority, identity, name)
        _write(certs / f"{name}.pem", pem.certificate)
        _write(certs / f"{name}-key.pem", pem.key)
    for name in ("secret", "manager-secret"):
        place = folder / name
        if place.is_file() and place.stat().st_size:
            continue  # what the nodes keep in this directory is sealed with it
        place.unlink(missing_ok=True)
        _write(place, secrets.token_urlsafe(32).encode())


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _word(plan: Plan, folder: Path, nodes: list[DevNode]) -> dev_file.DevCluster:
    asked = "gate" if plan.gates else "manager"
    return dev_file.DevCluster(
        pid=os.getpid(),
        directory=str(folder),
        kept=plan.data is not None,
        managers=tuple(("127.0.0.1", node.port) for node in nodes if node.role == asked),
        certs=str(folder / "certs"),
    )


def _counted(plan: Plan) -> str:
    managers = f"{plan.managers} manager{'' if plan.managers == 1 else 's'}"
    each = f"{managers} and {plan.workers} worker{'' if plan.workers == 1 else 's'}"
    if not plan.gates:
        return each
    gates = f"{plan.gates} gate{'' if plan.gates == 1 else 's'}"
    datacenters = f"{plan.datacenters} datacenter{'' if plan.datacenters == 1 else 's'}"
    return f"{gates}, {datacenters} with {each} each"


def _ready(plan: Plan, nodes: list[DevNode], leaders: list[str], cores: int) -> str:
    port = "" if plan.port == 7100 else f":{plan.port}"
    where = f"127.0.0.1{port}"
    word = "leader" if len(leaders) == 1 else "leaders"
    workers = f"  hyperscale workers --manager {where}\n" if not plan.gates else ""
    return (
        f"ready: {_counted(plan)}, {cores} cores, {word} {', '.join(leaders)}\n"
        f"  hyperscale run test.py --cluster {where}\n"
        f"{workers}"
        f"  http://{nodes[0].page}/metrics of {nodes[0].name}, and so on to {nodes[-1].page}\n"
        "Ctrl-C ends it all"
    )
