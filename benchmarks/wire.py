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
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import heartbeat
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
from hyperscale.wire.sealed import Sealer

OURS = "hyperscale"
OURS_ASYNC = "hyperscale, async handler"
GRPC = "grpcio asyncio"
RATIO_MIN = 5.0
JSON_RATIO_MIN = 10.0
DATAGRAM_BYTES_MAX = 1200
REPEATS = 500
PROGRAM = HERE / "peers" / "wire_nodes.py"


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
        replace(
            taken.figure("the same, handler an async def", OURS_ASYNC, GRPC, 0),
            required="–",
            ok=None,
        ),
    ]
    return figures, taken.report("requests/s")


def heartbeats(rounds: int) -> list[Figure]:
    sealer = Sealer("manager-eu-1-017", 1, "a secret for measuring only 4711")
    largest = heartbeat.largest(sealer.payload_bytes_max)
    plain = heartbeat.to_dict(largest)
    assert heartbeat.from_bytes(heartbeat.to_bytes(largest)) == largest
    assert heartbeat.from_json(heartbeat.to_json(largest)) == largest
    contenders: list[tuple[str, Callable[[], object]]] = [
        ("msgspec", lambda: heartbeat.from_bytes(heartbeat.to_bytes(largest))),
        ("json", lambda: heartbeat.from_json(heartbeat.to_json(largest))),
        ("json, dicts to dicts", lambda: json.loads(json.dumps(plain))),
    ]

    def rate_of(work: Callable[[], object]) -> Callable[[], float]:
        return lambda: REPEATS / min(timeit.repeat(work, number=REPEATS, repeat=3))

    taken = interleave([(label, rate_of(work)) for label, work in contenders], rounds)
    size = len(sealer.seal(heartbeat.to_bytes(largest)))
    what = f"encode + decode, largest heartbeat ({len(largest.updates)} pieces of gossip)"
    bare = taken.figure("the same", "msgspec", "json, dicts to dicts", JSON_RATIO_MIN)
    return [
        taken.figure(what, "msgspec", "json", JSON_RATIO_MIN),
        replace(bare, required="× json, dicts to dicts; nothing required", ok=None),
        Figure(
            "largest heartbeat, sealed",
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
