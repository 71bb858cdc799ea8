"""Both ends of the request/response benchmark, ours and gRPC's, one process each.

    python wire_nodes.py serve|call hyperscale|grpc PORT CERTIFICATES [SECONDS]

Messages are the same msgspec struct on both sides; gRPC carries it as opaque bytes through a
generic handler, so no code generation takes part in its time.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

IN_FLIGHT = 64
WARM_UP_S = 0.5
TIMEOUT_S = 10.0
METHOD = "Progress"
SERVICE = "bench.Wire"


class Progress(msgspec.Struct, tag="bench.progress"):
    job: str
    sequence: int
    completed: int


class Noted(msgspec.Struct, tag="bench.noted"):
    job: str
    sequence: int


async def measure(call: Callable[[Progress], Awaitable[Noted]], seconds: float) -> str:
    """Answers per second, and per second of the caller's CPU, with 64 requests in flight."""
    done = 0
    running = True

    async def ask(lane: int) -> None:
        nonlocal done
        while running:
            noted = await call(Progress("job-000017", lane, done))
            assert noted.sequence == lane
            done += 1

    lanes = [asyncio.ensure_future(ask(lane)) for lane in range(IN_FLIGHT)]
    await asyncio.sleep(WARM_UP_S)
    before, started, busy = done, time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    answers = done - before
    passed, busy = time.perf_counter() - started, time.process_time() - busy
    running = False
    await asyncio.gather(*lanes)
    return f"{answers / passed} {answers / busy}"


async def until_told() -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    print("ready", flush=True)
    await told.wait()


def our_endpoint(host: Any, role: str, folder: Path, handlers: Any) -> Any:
    from hyperscale.wire.certificates import Credentials
    from hyperscale.wire.endpoint import Endpoint
    from hyperscale.wire.handshake import Introduction
    from hyperscale.wire.identity import Identity
    from hyperscale.wire.messages import Priority, Registry

    registry = Registry()
    registry.add(Progress, priority=Priority.NORMAL)
    registry.add(Noted, priority=Priority.NORMAL)
    identity = Identity(
        node_id=role,
        incarnation=1,
        role=role,
        cluster_id="bench",
        environment_id="bench",
        datacenter="bench",
    )
    files = Credentials(folder / "ca.pem", folder / f"{role}.pem", folder / f"{role}-key.pem")
    return Endpoint(host, Introduction(identity), registry, handlers, credentials=files)


async def ours(action: str, style: str, port: int, folder: Path, seconds: float) -> None:
    from hyperscale.runtime.host import Address
    from hyperscale.runtime.real import RealHost
    from hyperscale.wire.peer import Peer
    from hyperscale.wire.server import Server

    def note(call: Any, progress: Progress) -> Noted:
        return Noted(progress.job, progress.sequence)

    async def note_later(call: Any, progress: Progress) -> Noted:
        return Noted(progress.job, progress.sequence)

    address = Address("127.0.0.1", port)
    with TemporaryDirectory() as data:
        async with RealHost(action, data) as host:
            if action == "serve":
                handler = note if style == "hyperscale" else note_later
                server = Server(our_endpoint(host, "manager", folder, {Progress: handler}))
                await server.start(address)
                await until_told()
                return
            peer = Peer(our_endpoint(host, "worker", folder, {}), address)
            await peer.connection()
            print(await measure(lambda m: peer.request(m, Noted, TIMEOUT_S), seconds))


async def theirs(action: str, port: int, folder: Path, seconds: float) -> None:
    import grpc

    encode = msgspec.msgpack.Encoder().encode
    read_progress = msgspec.msgpack.Decoder(Progress).decode
    read_noted = msgspec.msgpack.Decoder(Noted).decode
    authority = (folder / "ca.pem").read_bytes()

    def files(role: str) -> tuple[bytes, bytes]:
        return (folder / f"{role}-key.pem").read_bytes(), (folder / f"{role}.pem").read_bytes()

    async def note(progress: Progress, context: Any) -> Noted:
        return Noted(progress.job, progress.sequence)

    if action == "serve":
        server = grpc.aio.server()
        method = grpc.unary_unary_rpc_method_handler(
            note, request_deserializer=read_progress, response_serializer=encode
        )
        handler = grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})
        server.add_generic_rpc_handlers((handler,))
        tls = grpc.ssl_server_credentials([files("manager")], authority, True)
        server.add_secure_port(f"127.0.0.1:{port}", tls)
        await server.start()
        await until_told()
        await server.stop(0)
        return
    key, certificate = files("worker")
    tls = grpc.ssl_channel_credentials(authority, key, certificate)
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", tls) as channel:
        call = channel.unary_unary(
            f"/{SERVICE}/{METHOD}", request_serializer=encode, response_deserializer=read_noted
        )
        print(await measure(lambda message: call(message, timeout=TIMEOUT_S), seconds))


def main() -> None:
    action, style, port, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0
    if style == "grpc":
        asyncio.run(theirs(action, port, folder, seconds))
    else:
        from hyperscale.runtime.real import run

        run(ours(action, style, port, folder, seconds))


if __name__ == "__main__":
    main()
