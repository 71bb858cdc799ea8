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
import time
import timeit
from collections.abc import Callable, Iterator, Mapping
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
REPEATS = 2_000
PROGRAM = HERE / "peers" / "wire_nodes.py"


def write_certificates(folder: Path, nodes: Mapping[str, str]) -> None:
    """A certificate for each node by its id; `nodes` says which role it has."""
    authority = make_authority("bench")
    (folder / "ca.pem").write_bytes(authority.certificate)
    for node_id, role in nodes.items():
        identity = CertificateIdentity(role, "bench", "bench", "bench")
        node = make_node(authority, identity, node_id)
        (folder / f"{node_id}.pem").write_bytes(node.certificate)
        (folder / f"{node_id}-key.pem").write_bytes(node.key)


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


class Race:
    """Rates of each contender, and beside them what the caller's CPU alone would have allowed:
    on a machine with other work to do the first says less than the second."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self.by_cpu = Rounds()

    def run(self, label: str, python: str, style: str) -> float:
        port = free_port()
        with serving(python, style, port, self._folder), on_core(CLIENT_CORE):
            command = [python, str(PROGRAM), "call", style, str(port), str(self._folder)]
            done = subprocess.run(
                [*command, str(self._seconds)],
                capture_output=True,
                text=True,
                timeout=self._seconds + 60,
            )
        if done.returncode:
            raise NotMeasured(last_words(done.stderr))
        rate, by_cpu = (float(word) for word in done.stdout.split())
        self.by_cpu.values.setdefault(label, []).append(by_cpu)
        return rate


def requests(grpc_python: str, rounds: int, seconds: float) -> tuple[list[Figure], str]:
    with TemporaryDirectory() as made:
        write_certificates(Path(made), {"manager": "manager", "worker": "worker"})
        race = Race(Path(made), seconds)
        turns = [
            (OURS, functools.partial(race.run, OURS, sys.executable, "hyperscale")),
            (GRPC, functools.partial(race.run, GRPC, grpc_python, "grpc")),
            (OURS_ASYNC, functools.partial(race.run, OURS_ASYNC, sys.executable, "async")),
        ]
        taken = interleave(turns, rounds)
    figures = [taken.figure("request/response, mutual TLS, 64 in flight", OURS, GRPC, RATIO_MIN)]
    if not taken.reasons:
        figures += [
            told(taken.figure("the same, handler an async def", OURS_ASYNC, GRPC, RATIO_MIN)),
            told(race.by_cpu.figure("per second of the caller's CPU", OURS, GRPC, RATIO_MIN)),
        ]
    return figures, taken.report("requests/s")


def heartbeats(rounds: int) -> list[Figure]:
    sealer = Sealer("manager-eu-1-017", "a secret for measuring only 4711")
    probe = heartbeat.largest(sealer.payload_bytes_max)
    state, plain, plain_probe = (
        probe.state,
        heartbeat.state_dict(probe.state),
        heartbeat.to_dict(probe),
    )
    assert heartbeat.from_bytes(heartbeat.to_bytes(probe)) == probe
    assert heartbeat.from_json(heartbeat.to_json(probe)) == probe
    contenders: list[tuple[str, Callable[[], object]]] = [
        ("heartbeat", lambda: heartbeat.read_state(heartbeat.encode(state))),
        ("json", lambda: json.loads(json.dumps(plain))),
        ("probe", lambda: heartbeat.from_bytes(heartbeat.to_bytes(probe))),
        ("probe in json", lambda: json.loads(json.dumps(plain_probe))),
        ("probe in json with structs", lambda: heartbeat.from_json(heartbeat.to_json(probe))),
    ]

    def rate_of(work: Callable[[], object]) -> Callable[[], float]:
        timing = functools.partial(timeit.repeat, timer=time.process_time, repeat=5)
        return lambda: REPEATS / min(timing(work, number=REPEATS))

    taken = interleave([(label, rate_of(work)) for label, work in contenders], rounds)
    what = f"encode + decode, probe with {len(probe.updates)} pieces of gossip"
    size = len(sealer.seal(heartbeat.to_bytes(probe)))
    return [
        taken.figure("encode + decode, largest heartbeat", "heartbeat", "json", JSON_RATIO_MIN),
        told(taken.figure(what, "probe", "probe in json", JSON_RATIO_MIN)),
        told(taken.figure(what, "probe", "probe in json with structs", JSON_RATIO_MIN)),
        Figure(
            "largest heartbeat in a full probe, sealed",
            f"≤ {DATAGRAM_BYTES_MAX:,} bytes",
            f"{size:,} bytes",
            size <= DATAGRAM_BYTES_MAX,
        ),
    ]


def told(figure: Figure) -> Figure:
    """A row that nothing is required of."""
    return replace(figure, required=f"({figure.required})", ok=None)


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
