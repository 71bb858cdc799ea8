"""Each protocol against the tools made for it: requests per CPU second of the client.

    python benchmarks/protocols.py                     all rows
    python benchmarks/protocols.py http2 grpc          some
    python benchmarks/protocols.py --rounds 1 --seconds 1

By CPU time, in the kernel too, because the server is the limit of most rows and because other work
on the machine then matters less. Requests are counted by the server. A row is a function that gives
figures and a line in ROWS.
"""

from __future__ import annotations

import argparse
import json
import shutil
import ssl
import sys
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from contenders import HYPERSCALE, K6, PEERS, Contender, Load, measured
from harness import Figure, NotMeasured, Part, interleave, measure, note, parser_of
from memory import per_vu
from targets import Embedded, Nginx, Target, nginx_program

VUS = 64
MEMORY_VUS = 5_000
MEMORY_KIB_MAX = 16


def _h2load(load: Load, url: str, folder: Path) -> list[str]:
    return ["-c", str(load.vus), "-m1", "-t1", f"-D{load.duration_s}", f"{url}{load.path}"]


def _h2load_complaint(output: str, folder: Path) -> str:
    line = next((line for line in output.splitlines() if line.startswith("requests:")), "")
    return "" if " 0 failed, 0 errored" in line else line or "no summary"


def _grpcio(load: Load, url: str, folder: Path) -> list[str]:
    return [str(PEERS / "grpcio_asyncio.py")]


def _silent(output: str, folder: Path) -> str:
    return ""


H2LOAD = Contender("h2load", "h2load", _h2load, _h2load_complaint)
GRPCIO = Contender("grpcio asyncio", Path(sys.executable).name, _grpcio, _silent)


def row(
    what: str,
    flow: str,
    target: Target,
    required: Sequence[tuple[Contender, float]],
    options: argparse.Namespace,
) -> list[Figure]:
    """Requests per CPU second, ours against each of the others."""
    load = Load(flow, VUS, options.seconds)

    def turn(one: Contender) -> float:
        return measured(one, load, target).per_cpu_second

    with target:
        tools = [HYPERSCALE, *(tool for tool, _ in required)]
        taken = interleave([(one.name, lambda one=one: turn(one)) for one in tools], options.rounds)
    note(taken.report("requests per CPU second"))
    return [taken.figure(what, "hyperscale", tool.name, least) for tool, least in required]


def nginx(scheme: str) -> Nginx:
    program = nginx_program()
    if program is None:
        raise NotMeasured("nginx is not installed")
    return Nginx(program, scheme, http2=True)


def http2(options: argparse.Namespace) -> list[Figure]:
    what = f"HTTP/2 GET over TLS, {VUS} VUs, nginx"
    return row(what, "http2", nginx("https"), [(K6, 3), (H2LOAD, 0.35)], options)


def grpc(options: argparse.Namespace) -> list[Figure]:
    what = f"gRPC unary echo, {VUS} VUs, the embedded target"
    return row(what, "grpc", Embedded(), [(K6, 3), (GRPCIO, 6)], options)


class Secured(Embedded):
    """With TLS, so that it speaks HTTP/3 as well."""

    scheme = "https"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def command(self, folder: Path) -> list[str]:
        options = json.dumps({"port": self.port, "tls": True})
        return [sys.executable, "-P", "-m", "hyperscale.target", options]

    def stats(self) -> Any:
        trusting = ssl._create_unverified_context()
        with urllib.request.urlopen(f"{self.url}/stats", timeout=30, context=trusting) as answer:
            return json.load(answer)


def http3(options: argparse.Namespace) -> list[Figure]:
    what = f"HTTP/3 GET, {VUS} VUs, the embedded target, against HTTP/2 over TLS"
    target = Secured()
    loads = {name: Load(name, VUS, options.seconds) for name in ("http3", "http2")}

    def turn(name: str) -> float:
        return measured(HYPERSCALE, loads[name], target).per_cpu_second

    with target:
        turns = [(name, partial(turn, name)) for name in loads]
        taken = interleave(turns, options.rounds)
    note(taken.report("requests per CPU second"))
    return [taken.figure(what, "http3", "http2", 0.5)]


def memory(options: argparse.Namespace) -> list[Figure]:
    figures = []
    for flow, target in (("http2", nginx("http")), ("grpc", Embedded())):
        with target:
            figures += per_vu(target, MEMORY_VUS, MEMORY_KIB_MAX, flow=flow)
    return figures


ROWS: dict[str, Part] = {"http2": http2, "http3": http3, "grpc": grpc, "memory": memory}


def main() -> int:
    parser = parser_of(__doc__, ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    if shutil.which("h2load") is None:
        note("h2load is not installed (Debian: nghttp2-client)")
    return measure(parser, parser.parse_args(), ROWS)


if __name__ == "__main__":
    sys.exit(main())
