"""A node under a flood of telemetry, the flood, and somebody who probes the node meanwhile.

    python flood_nodes.py serve PORT CERTIFICATES
    python flood_nodes.py flood PORT CERTIFICATES SECONDS RATE
    python flood_nodes.py probe PORT CERTIFICATES SECONDS

`flood` prints how many reports it sent; `probe` prints JSON: latencies and the node's own counts.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from hyperscale.cluster.overload import Admission
from hyperscale.cluster.overload import Priority as Class
from hyperscale.nodes.member.admission import NodeAdmission
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost, run
from hyperscale.wire.certificates import Credentials
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Priority, Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server
from hyperscale.wire.serving import Call, Handler

# What a report keeps its slot for, such as a write to a store: at 20,000/s some 400 at once.
REPORT_TAKES_S = 0.02
PROBE_EVERY_S = 0.01
TURN_S = 0.005


class Report(msgspec.Struct, frozen=True, tag="flood.report"):
    node: str
    sequence: int
    values: list[float]


class Ping(msgspec.Struct, frozen=True, tag="flood.ping"):
    sequence: int


class AskStatus(msgspec.Struct, frozen=True, tag="flood.ask_status"):
    pass


class Status(msgspec.Struct, frozen=True, tag="flood.status"):
    low_taken: int
    low_shed: int
    critical_shed: int
    load: str


KINDS = Registry()
KINDS.add(Report, priority=Priority.LOW)
for struct in (Ping, AskStatus, Status):
    KINDS.add(struct, priority=Priority.CRITICAL)


def endpoint(
    host: RealHost,
    role: str,
    folder: Path,
    handlers: dict[type[msgspec.Struct], Handler] | None = None,
    admission: NodeAdmission | None = None,
) -> Endpoint:
    identity = Identity(
        node_id=host.name,
        incarnation=1,
        role=role,
        cluster_id="bench",
        environment_id="bench",
        datacenter="bench",
    )
    files = Credentials(
        folder / "ca.pem", folder / f"{host.name}.pem", folder / f"{host.name}-key.pem"
    )
    return Endpoint(
        host, Introduction(identity), KINDS, handlers, credentials=files, admission=admission
    )


async def serve(host: RealHost, address: Address, folder: Path) -> None:
    admission = NodeAdmission(host, Admission())
    admission.watch()

    async def take(_call: Call, _report: Report) -> None:
        await asyncio.sleep(REPORT_TAKES_S)

    def status(_call: Call, _ask: AskStatus) -> Status:
        counts = admission.slots.counts()
        low = counts[Class.LOW]
        return Status(low.acquired, low.shed, counts[Class.CRITICAL].shed, admission.load.name)

    handlers: dict[type[msgspec.Struct], Handler] = {
        Report: take,
        Ping: lambda _call, ping: ping,
        AskStatus: status,
    }
    await Server(endpoint(host, "manager", folder, handlers, admission)).start(address)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    print("ready", flush=True)
    await told.wait()


async def flood(host: RealHost, address: Address, folder: Path, seconds: float, rate: int) -> None:
    """On schedule, whatever the node does with it."""
    connection = await Peer(endpoint(host, "worker", folder), address).connection()
    sent, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds:
        while sent < passed * rate:
            await connection.send(Report("worker", sent, [1.0, 2.0, 3.0, 4.0]))
            sent += 1
        await asyncio.sleep(TURN_S)
    print(sent / (time.perf_counter() - started))


async def probe(host: RealHost, address: Address, folder: Path, seconds: float) -> None:
    """On schedule as well: an answer that is late delays no later probe."""
    peer = Peer(endpoint(host, "worker", folder), address)
    await peer.connection()
    latencies: list[float] = []

    async def once(sequence: int) -> None:
        started = time.perf_counter()
        await peer.request(Ping(sequence), Ping, 10.0)
        latencies.append(time.perf_counter() - started)

    probes = []
    for sequence in range(int(seconds / PROBE_EVERY_S)):
        probes.append(asyncio.ensure_future(once(sequence)))
        await asyncio.sleep(PROBE_EVERY_S)
    await asyncio.gather(*probes)
    status = await peer.request(AskStatus(), Status, 10.0)
    print(json.dumps({"latencies_s": latencies, "status": msgspec.to_builtins(status)}))


async def main(action: str, port: str, folder: str, *rest: str) -> None:
    address, certificates = Address("127.0.0.1", int(port)), Path(folder)
    with TemporaryDirectory() as data:
        async with RealHost(action, data) as host:
            if action == "serve":
                await serve(host, address, certificates)
            elif action == "flood":
                await flood(host, address, certificates, float(rest[0]), int(rest[1]))
            else:
                await probe(host, address, certificates, float(rest[0]))


if __name__ == "__main__":
    run(main(*sys.argv[1:]))
