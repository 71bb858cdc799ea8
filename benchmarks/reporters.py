"""What reporters hold, and what they cost.

    python benchmarks/reporters.py rate      10,000 points a second to each backend, for 10 s
    python benchmarks/reporters.py away      memory while a backend is away
    python benchmarks/reporters.py cost      CPU of the generators with a reporter against without

Servers are those of `make servers`; a backend that is missing is left out.
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil
from _pytest.outcomes import Skipped
from tests.integration.reporting.worlds import LIVE

from hyperscale.reporting.config import Config
from hyperscale.reporting.delivery import ROWS_MAX, Delivery
from hyperscale.reporting.points import Points, Row
from hyperscale.reporting.registry import config_of
from hyperscale.reporting.reporter import Reporter
from hyperscale.target.process import running

STEPS = 10_000
BACKENDS = ("timescaledb", "influxdb", "prometheus", "graphite", "statsd", "kafka")
LATENCIES = {"p50_ms": 1.5, "p95_ms": 12.25, "p99_ms": 30.125}
LABELS = [{"workflow": "Shop", "step": f"step-{number}"} for number in range(STEPS)]


def counts(of: int) -> dict[str, int]:
    return {"requests": of, "failed": 0, "unsent": 0, "bytes_in": of * 900, "bytes_out": of * 90}


def moment(second: int, began_s: float, rows: int = STEPS) -> Points:
    """Of a test with that many steps, each of which has numbers of its own."""
    made = [
        Row(
            "step",
            LABELS[number],
            counts(number + second),
            counts(number * second),
            {**LATENCIES, "p99_ms": 30.0 + number},
        )
        for number in range(rows)
    ]
    return Points({"run": "r", "test": "bench"}, began_s + second, 1.0, began_s, made)


def rate(seconds: int, rows: int) -> None:
    print(f"{'backend':<12} {'points/s':>9} {'values/s':>9} {'lost':>6} {'CPU of a core':>14}")
    for name in BACKENDS:
        try:
            with tempfile.TemporaryDirectory() as folder, LIVE[name](Path(folder)) as (config, _):
                print(f"{name:<12} {_rate(config, seconds, rows)}", flush=True)
        except Skipped as skipped:
            print(f"{name:<12} {skipped}")


def _rate(config: Config, seconds: int, rows: int) -> str:
    """Points come at the begin of each second, from where they were made beforehand."""
    began_s = float(int(time.time())) - seconds
    moments = [moment(second, began_s, rows) for second in range(seconds)]
    delivery = Delivery([(Reporter(config), None)])
    before, began = time.process_time(), time.perf_counter()
    delivery.start(lambda text: print(text, file=sys.stderr))
    for second, points in enumerate(moments):
        time.sleep(max(0.0, began + second - time.perf_counter()))
        delivery.offer(points)
    time.sleep(max(0.0, began + seconds - time.perf_counter()))
    used = time.process_time() - before
    late = seconds * rows - delivery.lanes[0].sent
    errors = delivery.finish(60.0)
    whole = time.perf_counter() - began
    for error in errors:
        print(error.message, file=sys.stderr)
    sent = delivery.lanes[0].sent
    values = 8 * sent / whole
    lost = seconds * rows - sent
    told = f"{sent / whole:>9,.0f} {values:>9,.0f} {lost:>6,} {used / seconds:>13.2f}"
    return f"{told}   {late:,} of them after the end"


def away(seconds: int) -> None:
    """A closed port, 15 and then 1,000 points a second; memory of this process."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for rows in (15, 1_000):
        delivery = Delivery([(Reporter(config_of(f"influxdb://127.0.0.1:{port}/load")), None)])
        delivery.start(lambda text: None)
        process = psutil.Process()
        before = process.memory_info().rss
        for second in range(seconds):  # as fast as they are made: the queue is bounded by count
            delivery.offer(moment(second, 0.0, rows))
            if second % 50 == 0:
                time.sleep(0.01)
        time.sleep(1.0)
        grown = (process.memory_info().rss - before) / 1e6
        (error,) = delivery.finish(5.0)
        print(f"{rows:>6,} points/s, away for {seconds} s: {grown:+.0f} MB; {error.message}")
    print(f"limit: {ROWS_MAX:,} points; peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}")


@contextmanager
def sink() -> Iterator[int]:
    """Reads and forgets, in a process of its own, so that no server competes for the CPU."""
    code = (
        "import socketserver\n"
        "class H(socketserver.BaseRequestHandler):\n"
        "    def handle(self):\n"
        "        while self.request.recv(65536): pass\n"
        "s = socketserver.ThreadingTCPServer(('127.0.0.1', 0), H); s.daemon_threads = True\n"
        "print(s.server_address[1], flush=True); s.serve_forever()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def cost(rounds: int, seconds: int) -> None:
    """Requests for each CPU second of the generators, in turns."""
    with running() as target, sink() as port, tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "a.json")

        def one(*more: str) -> float:
            words = ("run", f"{target}/json", "-u", "32", "-d", f"{seconds}s", "-w", "1", "-q")
            command = [sys.executable, "-m", "hyperscale", *words, "-o", str(out), *more]
            subprocess.run(command, check=False, capture_output=True)
            told = json.loads(out.read_text())["generator"]
            return float(told["requests_per_cpu_second"])

        kinds: dict[str, Callable[[], float]] = {
            "without": one,
            "telegraf": lambda: one("-o", f"telegraf://127.0.0.1:{port}"),
            "statsd": lambda: one("-o", "statsd://127.0.0.1:9"),
        }
        seen: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, run in kinds.items():
                seen[name].append(run())
    for name, values in seen.items():
        ratios = sorted(a / b for a, b in zip(values, seen["without"], strict=True))
        print(
            f"{name:<10} {median(values):>9,.0f} requests/CPU s   "
            f"{median(ratios):.3f} × ({ratios[0]:.3f}–{ratios[-1]:.3f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["rate", "away", "cost"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=STEPS, help="points a second; of 8 values each")
    parser.add_argument("--seconds", type=int, default=0)
    given = parser.parse_args()
    if given.what == "rate":
        rate(given.seconds or 10, given.rows)
    elif given.what == "away":
        away(given.seconds or 600)
    else:
        cost(given.rounds, given.seconds or 4)


if __name__ == "__main__":
    main()
