"""A node under a flood of telemetry: does it still answer, forget nothing it must not, stay small?

    python benchmarks/flood.py [--seconds 20] [--rate 20000]

Mutual TLS on loopback; the node on core 1, the flood and the probing on core 0. Probes are sent
every 10 ms on schedule, for a while without the flood too: what the machine's other work costs
shows there as well. Memory is the node's resident size in the second half against the first,
both after a warm-up. Markdown to stdout; exit code 1 when a required figure is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from harness import (
    CLIENT_CORE,
    HERE,
    TARGET_CORE,
    Figure,
    NotMeasured,
    last_words,
    machine,
    note,
    on_core,
    resident_bytes,
    table,
)
from wire import free_port, write_certificates

PROGRAM = HERE / "peers" / "flood_nodes.py"
P99_MS_MAX = 100.0
RATE_SHARE_MIN = 0.95
GROWTH_MAX = 0.02
WARM_UP_S = 3.0
CONTROL_S = 5.0
SAMPLE_S = 0.25


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def node(port: int, folder: Path) -> Iterator[subprocess.Popen[str]]:
    with on_core(TARGET_CORE):
        server = start("serve", str(port), str(folder))
    try:
        assert server.stdout is not None
        if server.stdout.readline().strip() != "ready":
            raise NotMeasured(last_words(server.communicate(timeout=10)[1]))
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def result(process: subprocess.Popen[str], deadline_s: float) -> Any:
    output, errors = process.communicate(timeout=deadline_s)
    if process.returncode:
        raise NotMeasured(last_words(errors))
    return json.loads(output)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@dataclass(frozen=True)
class Measured:
    sent_per_s: float
    probed: Any
    probed_before: Any
    sizes: list[int]
    busy_share: float


def measure(seconds: float, rate: int) -> Measured:
    with TemporaryDirectory() as folder:
        write_certificates(Path(folder), {"serve": "manager", "flood": "worker", "probe": "worker"})
        port = free_port()
        place = (str(port), folder)
        with node(port, Path(folder)) as server:
            with on_core(CLIENT_CORE):
                before = result(start("probe", *place, str(CONTROL_S)), 60.0)
                flood = start("flood", *place, str(seconds + WARM_UP_S), str(rate))
                time.sleep(WARM_UP_S)
                probe = start("probe", *place, str(seconds - 2.0))
            process, sizes = psutil.Process(server.pid), []
            busy, began = process.cpu_times(), time.monotonic()
            while (passed := time.monotonic() - began) < seconds - 1.0:
                sizes.append(resident_bytes(server.pid))
                time.sleep(SAMPLE_S)
            used = process.cpu_times()
            share = (used.user + used.system - busy.user - busy.system) / passed
            probed = result(probe, seconds + 30.0)
            return Measured(result(flood, seconds + 30.0), probed, before, sizes, share)


def figures(rate: int, run: Measured) -> list[Figure]:
    latencies, status, sizes = run.probed["latencies_s"], run.probed["status"], run.sizes
    p50, p99 = percentile(latencies, 0.5) * 1000, percentile(latencies, 0.99) * 1000
    quiet_p99 = percentile(run.probed_before["latencies_s"], 0.99) * 1000
    half = len(sizes) // 2
    growth = max(sizes[half:]) / max(sizes[:half]) - 1
    taken, shed = status["low_taken"], status["low_shed"]
    return [
        Figure(
            "LOW messages sent per second",
            f"{rate:,}",
            f"{run.sent_per_s:,.0f}, keeping the node's core {run.busy_share:.0%} busy",
            run.sent_per_s >= rate * RATE_SHARE_MIN,
        ),
        Figure(
            "probe answers p99",
            f"< {P99_MS_MAX:g} ms",
            f"{p99:.1f} ms (p50 {p50:.1f} ms; p99 before the flood {quiet_p99:.1f} ms)",
            p99 < P99_MS_MAX,
        ),
        Figure(
            "resident memory, second half against first",
            f"<= +{GROWTH_MAX:.0%}",
            f"{growth:+.1%} of {max(sizes) / 2**20:.0f} MiB",
            growth <= GROWTH_MAX,
        ),
        Figure(
            "LOW shed and counted",
            "> 0",
            f"{shed:,} of {taken + shed:,}, the node being {status['load'].lower()}",
            shed > 0,
        ),
        Figure("CRITICAL shed", "0", str(status["critical_shed"]), status["critical_shed"] == 0),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=int, default=20_000)
    options = parser.parse_args()
    note(f"{machine()}: {options.rate:,} reports/s for {options.seconds:g} s")
    rows = figures(options.rate, measure(options.seconds, options.rate))
    print(table(rows))
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
