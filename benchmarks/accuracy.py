"""Whether the numbers are true: against the target's own measure, and through a freeze.

    python benchmarks/accuracy.py

The target times each of its answers. The median Hyperscale reports may differ from that by the
network and the generator's own work only. When the target freezes for a second, users who keep
arriving wait up to that second, and the response time must show them; a tool that waits before
asking again would show one slow request (coordinated omission).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from contenders import HYPERSCALE, read_results
from harness import (
    CLIENT_CORE,
    HERE,
    Figure,
    NotMeasured,
    failed,
    last_words,
    note,
    on_core,
    raise_open_file_limit,
    table,
    wait_for,
)
from targets import Embedded, fetch

CLOSED = "closed 10 VUs on /delay/20"
OPEN = "open 1,000/s on /delay/5"
FREEZE = "open 1,000/s through a freeze of 1 s"
P50_MS_OFF_MAX = 1.0
ARRIVALS_PER_S = 1000
OPEN_S = 6.0
STALL_S = 1.0
# Of arrivals spread evenly over the run, those within the freeze wait from STALL_S down to nothing,
# so the slowest hundredth of all waited longer than this.
STALL_P99_MS = (STALL_S - OPEN_S / 100) * 1000
STALL_MS_OFF_MAX = 100.0


def run(target: Embedded, workflow: str) -> Any:
    """The results of one workflow as it is written, pinned like every client."""
    with TemporaryDirectory(prefix="bench-accuracy-") as name:
        folder = Path(name)
        out = ["--ui", "none", "--json", str(folder / "results.json")]
        command = [HYPERSCALE.path(), "run", str(HERE / "workflows.py"), workflow, "-w", "1", *out]
        with on_core(CLIENT_CORE):
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "BENCH_TARGET": target.url},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        _, complaint = process.communicate(timeout=60)
        if process.returncode:
            raise NotMeasured(f"exit code {process.returncode}: {last_words(complaint)}")
        return read_results(folder)["workflows"][0]


def median(target: Embedded, workflow: str, path: str, what: str) -> list[Figure]:
    fetch(target.port, "/stats/reset")
    result = run(target, workflow)
    step = result["steps"][0]
    own = target.stats()["delays"][path]
    off_ms = step["service"]["p50_ms"] - own["p50_ms"]
    measured = (
        f"{off_ms:+.2f} ms ({step['service']['p50_ms']:.2f}, target {own['p50_ms']:.2f}; "
        f"mean {step['service']['mean_ms'] - own['mean_ms']:+.2f} ms)"
    )
    counted = f"{step['count']:,} of {own['count']:,}"
    note(f"  {what}: {measured}, {counted}")
    return [
        Figure(
            f"accuracy, {what}: p50 against the target's own measure",
            f"within {P50_MS_OFF_MAX:g} ms",
            measured,
            abs(off_ms) <= P50_MS_OFF_MAX,
        ),
        Figure(
            f"accuracy, {what}: requests counted, of those the target answered",
            "all",
            counted,
            step["count"] == own["count"],
        ),
    ]


def stall(target: Embedded) -> list[Figure]:
    fetch(target.port, "/stats/reset")
    over = threading.Event()
    frozen = threading.Event()

    def freeze() -> None:
        wait_for(lambda: over.is_set() or target.requests() > ARRIVALS_PER_S, "a second of load")
        if not over.is_set():
            fetch(target.port, f"/stall?ms={STALL_S * 1000:.0f}")
            frozen.set()

    freezer = threading.Thread(target=freeze)
    freezer.start()
    try:
        result = run(target, "Open")
    finally:
        over.set()
        freezer.join()
    if not frozen.is_set():
        raise NotMeasured("the target was not frozen during the run")
    step = result["steps"][0]
    p99_ms = step["response"]["p99_ms"]
    measured = (
        f"p99 {p99_ms:.0f} ms (service p99 {step['service']['p99_ms']:.0f} ms, "
        f"{result['dropped_iterations']} arrivals dropped)"
    )
    note(f"  stall: {measured}")
    return [
        Figure(
            f"accuracy, {FREEZE}: response time",
            f"p99 {STALL_P99_MS:.0f} ± {STALL_MS_OFF_MAX:.0f} ms",
            measured,
            abs(p99_ms - STALL_P99_MS) <= STALL_MS_OFF_MAX,
        )
    ]


def figures() -> list[Figure]:
    found: list[Figure] = []
    with Embedded() as target:
        parts: dict[str, Callable[[], list[Figure]]] = {
            CLOSED: lambda: median(target, "Closed", "/delay/20", CLOSED),
            OPEN: lambda: median(target, "Open", "/delay/5", OPEN),
            FREEZE: lambda: stall(target),
        }
        for what, measure in parts.items():
            try:
                found += measure()
            except NotMeasured as error:
                found.append(failed(f"accuracy, {what}", "", error))
    return found


def main() -> int:
    raise_open_file_limit()
    found = figures()
    print(table(found))
    return int(any(figure.ok is False for figure in found))


if __name__ == "__main__":
    sys.exit(main())
