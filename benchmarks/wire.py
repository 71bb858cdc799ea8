"""Figures of the wire: requests per second against gRPC, and the price of a heartbeat.

    python benchmarks/wire.py --grpc-python /path/to/venv/bin/python

Both contenders use mutual TLS on loopback, the caller on core 0, the server on core 1, 64 requests
in flight, the same message. gRPC may live in an environment of its own, which also needs msgspec.
Progress goes to stderr, Markdown to stdout. Exit code 1 when a required figure is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import timeit
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from harness import (
    CLIENT_CORE,
    HERE,
    TARGET_CORE,
    Figure,
    NotMeasured,
    Rounds,
    interleave,
    last_words,
    machine,
    note,
    on_core,
    table,
)

from hyperscale.wire.certificates import CertificateIdentity, make_authority, make_node

OURS = "hyperscale"
OURS_ASYNC = "hyperscale, async handler"
GRPC = "grpcio asyncio"
RATIO_MIN = 5.0
JSON_RATIO_MIN = 10.0
DATAGRAM_BYTES_MAX = 1200
PROGRAM = HERE / "peers" / "wire_nodes.py"


class Member(msgspec.Struct, array_like=True):
    node_id: str
    incarnation: int
    state: int
    role: str
    host: str
    port: int


class Heartbeat(msgspec.Struct, array_like=True):
    """As large as a manager's gets: its state, its coordinate and a full load of gossip."""

    node_id: str
    incarnation: int
    role: str
    datacenter: str
    term: int
    leader: str
    cores_total: int
    cores_free: int
    jobs: int
    workers: int
    health: int
    coordinate: list[float]
    error: float
    gossip: list[Member]


def largest_heartbeat() -> Heartbeat:
    return Heartbeat(
        node_id="manager-eu-1-000017",
        incarnation=412,
        role="manager",
        datacenter="eu-central-1",
        term=9_214,
        leader="manager-eu-1-000003",
        cores_total=65_536,
        cores_free=1_024,
        jobs=310,
        workers=1_000,
        health=3,
        coordinate=[0.0123 * index for index in range(9)],
        error=0.17,
        gossip=[
            Member(f"worker-eu-1-{n:06}", n * 37, n % 3, "worker", f"10.31.4.{n}", 7_400 + n)
            for n in range(20)
        ],
    )


def write_certificates(folder: Path) -> None:
    authority = make_authority("bench")
    (folder / "ca.pem").write_bytes(authority.certificate)
    for role in ("manager", "worker"):
        identity = CertificateIdentity(role, "bench", "bench", "bench")
        node = make_node(authority, identity, role)
        (folder / f"{role}.pem").write_bytes(node.certificate)
        (folder / f"{role}-key.pem").write_bytes(node.key)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(python: str, style: str, port: int, folder: Path) -> Iterator[None]:
    command = [python, str(PROGRAM), "serve", style, str(port), str(folder)]
    with on_core(TARGET_CORE):
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    try:
        assert server.stdout is not None
        if server.stdout.readline().strip() != "ready":
            raise NotMeasured(last_words(server.communicate(timeout=10)[1]))
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def rate(python: str, style: str, folder: Path, seconds: float) -> float:
    port = free_port()
    with serving(python, style, port, folder), on_core(CLIENT_CORE):
        command = [python, str(PROGRAM), "call", style, str(port), str(folder), str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    if done.returncode:
        raise NotMeasured(last_words(done.stderr))
    return float(done.stdout)


def requests(grpc_python: str, rounds: int, seconds: float) -> tuple[list[Figure], str]:
    with TemporaryDirectory() as made:
        folder = Path(made)
        write_certificates(folder)
        turns = [
            (OURS, functools.partial(rate, sys.executable, "hyperscale", folder, seconds)),
            (GRPC, functools.partial(rate, grpc_python, "grpc", folder, seconds)),
            (OURS_ASYNC, functools.partial(rate, sys.executable, "async", folder, seconds)),
        ]
        taken: Rounds = interleave(turns, rounds)
    figures = [
        taken.figure("request/response, mutual TLS, 64 in flight", OURS, GRPC, RATIO_MIN),
        taken.figure("the same, handler an async def", OURS_ASYNC, GRPC, RATIO_MIN),
    ]
    return figures, taken.report("requests/s")


def heartbeats(rounds: int) -> list[Figure]:
    heartbeat = largest_heartbeat()
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder(Heartbeat).decode
    plain = msgspec.to_builtins(heartbeat)
    assert decode(encode(heartbeat)) == heartbeat
    taken = interleave(
        [
            (
                "msgspec",
                lambda: 3_000 / timeit.timeit(lambda: decode(encode(heartbeat)), number=3_000),
            ),
            (
                "json",
                lambda: 3_000 / timeit.timeit(lambda: json.loads(json.dumps(plain)), number=3_000),
            ),
        ],
        rounds,
    )
    size = len(encode(heartbeat))
    return [
        taken.figure("encode + decode, largest heartbeat", "msgspec", "json", JSON_RATIO_MIN),
        Figure(
            "largest heartbeat",
            f"≤ {DATAGRAM_BYTES_MAX:,} bytes",
            f"{size:,} bytes",
            size <= DATAGRAM_BYTES_MAX,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument(
        "--grpc-python", default=os.environ.get("HYPERSCALE_GRPC_PYTHON", sys.executable)
    )
    options = parser.parse_args()
    print(f"{machine()}\n")
    note("requests")
    figures, detail = requests(options.grpc_python, options.rounds, options.seconds)
    note("heartbeats")
    figures += heartbeats(options.rounds)
    print(f"{table(figures)}\n\n{detail}")
    return int(any(figure.ok is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
