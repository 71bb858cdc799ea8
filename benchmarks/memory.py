"""What a virtual user costs in memory, and whether memory stays flat while a test runs.

    python benchmarks/memory.py                5,000 users against one user
    python benchmarks/memory.py --peers        the same for k6 and Locust
    python benchmarks/memory.py --tls          with TLS
    python benchmarks/memory.py --minutes 6    full rate for six minutes

Resident memory of the whole process tree. The empty generator is the same command with one user.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

from contenders import HYPERSCALE, K6, LOCUST, Contender, Load, running
from harness import Figure, NotMeasured, note, raise_open_file_limit, resident_bytes, table
from targets import Target, find_target

VUS = 5_000
GROWTH_MAX = 0.02
SAMPLE_S = 0.5
CONNECTS_PER_S = 400  # of the slowest tool with TLS, on the safe side
# The first minute fills caches and histograms; it is compared with what comes after.
WARM_UP_S = 60.0


def loaded_bytes(contender: Contender, target: Target, vus: int, flow: str = "get") -> int:
    """The highest resident size in a few seconds at full rate, everyone connected."""
    load = Load(flow, vus, window_s=4.0, slack_s=3.0 + vus / CONNECTS_PER_S)
    with running(contender, load, target) as run:
        samples = []
        until = time.monotonic() + load.window_s
        while time.monotonic() < until:
            samples.append(resident_bytes(run.process.pid))
            time.sleep(SAMPLE_S)
        run.finish()
    return max(samples)


def per_vu(
    target: Target,
    vus: int,
    kib_max: float | None = None,
    tools: Sequence[Contender] = (),
    flow: str = "get",
) -> list[Figure]:
    figures = []
    for tool in tools or (HYPERSCALE,):
        spoken = target.scheme if flow == "get" else flow
        what = f"memory, {vus:,} VUs, {spoken}, {tool.name}"
        limit = kib_max if tool is HYPERSCALE else None
        required = f"≤ {limit:g} KB a VU" if limit else ""
        try:
            empty = loaded_bytes(tool, target, 1, flow)
            full = loaded_bytes(tool, target, vus, flow)
        except NotMeasured as error:
            unmeasured = f"not measured: {error}"
            figures.append(Figure(what, required, unmeasured, False if limit else None))
            continue
        each = (full - empty) / (vus - 1) / 1024
        measured = f"{each:.1f} KB a VU ({empty / 2**20:.0f} → {full / 2**20:.0f} MB)"
        note(f"  {tool.name}: {measured}")
        figures.append(Figure(what, required, measured, each <= limit if limit else None))
    return figures


def over_time(target: Target, minutes: float) -> Figure:
    """Full rate for `minutes`; the last tenth against the tenth that follows the warm-up."""
    what = f"memory over time, full rate, {minutes:g} minutes"
    required = f"growth < {GROWTH_MAX:.0%} after the first minute"
    length_s = minutes * 60
    warm_up_s = min(WARM_UP_S, length_s / 4)
    samples: list[int] = []
    before = target.requests()
    with running(HYPERSCALE, Load("get", 64, length_s), target) as run:
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < length_s:
            if run.process.poll() is not None:
                raise NotMeasured("the run ended early")
            if elapsed >= warm_up_s:
                samples.append(resident_bytes(run.process.pid))
            time.sleep(SAMPLE_S)
        run.finish()
    tenth = max(len(samples) // 10, 1)
    first, last = statistics.median(samples[:tenth]), statistics.median(samples[-tenth:])
    grown = last / first - 1
    sent = target.requests() - before
    measured = (
        f"{grown:+.2%} ({first / 2**20:.1f} → {last / 2**20:.1f} MB, {sent / 1e6:.1f} M requests)"
    )
    note(f"  {measured}")
    return Figure(what, required, measured, grown < GROWTH_MAX)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=0.0, help="watch a run of this length")
    parser.add_argument("--vus", type=int, default=VUS)
    parser.add_argument("--peers", action="store_true", help="k6 and Locust too")
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    raise_open_file_limit()
    try:
        with find_target("https" if options.tls else "http") as target:
            if options.minutes:
                figures = [over_time(target, options.minutes)]
            else:
                tools = (HYPERSCALE, K6, LOCUST) if options.peers else (HYPERSCALE,)
                figures = per_vu(target, options.vus, tools=tools)
    except NotMeasured as error:
        sys.exit(f"not measured: {error}")
    print(table(figures))
    return int(any(figure.ok is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
