"""Interleaved rounds, pinned processes and the table of figures: what every benchmark shares.

A machine's speed drifts from minute to minute, so contenders take turns (A B C A B C ...) and a
figure is the median of the ratios within each round, never a number against a number of last week.
The client with all its processes has core 0 and the target core 1. The rate is counted by the
target, the same way for everyone, over a window in the middle of the load.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

HERE = Path(__file__).parent
CLIENT_CORE = 0
TARGET_CORE = 1


class NotMeasured(Exception):
    """A figure could not be taken; the sentence goes into the table."""


@dataclass(frozen=True)
class Figure:
    """A row of the table. `ok` is None where nothing is required or nothing could be measured."""

    what: str
    required: str
    measured: str
    ok: bool | None


def failed(what: str, required: str, reason: object) -> Figure:
    """Our own side could not be measured, which is no better than a figure missed."""
    return Figure(what, required, f"not measured: {reason}", False)


def last_words(output: str) -> str:
    """The end of what a failed program said, short enough for a table."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " / ".join(lines[-2:])[-250:] or "no output"


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(figures: Sequence[Figure]) -> str:
    verdict = {True: "ok", False: "**not**", None: "–"}
    lines = ["| figure | required | measured | |", "|---|---|---|---|"]
    lines += [f"| {f.what} | {f.required} | {f.measured} | {verdict[f.ok]} |" for f in figures]
    return "\n".join(lines)


def machine() -> str:
    return (
        f"{cpu_name()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; load average at the start "
        f"{os.getloadavg()[0]:.2f}"
    )


def cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def raise_open_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_file_limit() -> int:
    """How many files a process may open when it asks for all it can have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if hard == resource.RLIM_INFINITY else hard


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def on_core(*cores: int) -> Iterator[None]:
    """Processes started inside belong to these cores, with all their children."""
    if not hasattr(os, "sched_setaffinity"):
        note("this system cannot pin processes to a core: the ratios are rougher than they look")
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(allowed)[min(core, len(allowed) - 1)] for core in cores})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def wait_for(condition: Callable[[], bool], what: str, deadline_s: float = 30.0) -> None:
    until = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > until:
            raise NotMeasured(f"{what} did not happen within {deadline_s:g} s")
        time.sleep(0.02)


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and everything below it."""
    root = psutil.Process(pid)
    total = 0
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


def cpu_seconds(pid: int) -> float:
    """CPU time that a process and everything below it has used, in the kernel too."""
    root = psutil.Process(pid)
    used = [process.cpu_times() for process in [root, *root.children(recursive=True)]]
    return sum(times.user + times.system for times in used)


@dataclass
class Rounds:
    """What each contender reached, round by round; None where it could not be measured."""

    values: dict[str, list[float | None]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, label: str, measure: Callable[[], float]) -> None:
        series = self.values.setdefault(label, [])
        if label in self.reasons:
            series.append(None)
            return
        try:
            series.append(measure())
        except NotMeasured as error:
            self.reasons[label] = str(error)
            series.append(None)
            note(f"  {label}: {error}")
        else:
            note(f"  {label}: {series[-1]:,.0f}")

    def ratios(self, ours: str, theirs: str) -> list[float]:
        pairs = zip(self.values[ours], self.values[theirs], strict=True)
        return [a / b for a, b in pairs if a is not None and b]

    def ratio(self, ours: str, theirs: str) -> str:
        """For a person: the median of the rounds, lowest to highest, or why there is none."""
        for label in (ours, theirs):
            if label in self.reasons:
                return f"not measured: {self.reasons[label]}"
        ratios = self.ratios(ours, theirs)
        return f"{statistics.median(ratios):.2f} × ({min(ratios):.2f}–{max(ratios):.2f})"

    def figure(self, what: str, ours: str, theirs: str, at_least: float, aim: str = "") -> Figure:
        required = f"≥ {at_least:g} × {theirs}{aim}"
        if ours in self.reasons:
            return failed(what, required, self.reasons[ours])
        if theirs in self.reasons:
            return Figure(what, required, f"not measured: {self.reasons[theirs]}", None)
        middle = statistics.median(self.ratios(ours, theirs))
        return Figure(what, required, self.ratio(ours, theirs), middle >= at_least)

    def report(self, unit: str) -> str:
        lines = [f"| | median {unit} | lowest | highest |", "|---|---|---|---|"]
        for label, series in self.values.items():
            seen = [value for value in series if value is not None]
            if label in self.reasons or not seen:
                lines.append(f"| {label} | not measured: {self.reasons[label]} | | |")
            else:
                lines.append(
                    f"| {label} | {statistics.median(seen):,.0f} | {min(seen):,.0f} "
                    f"| {max(seen):,.0f} |"
                )
        return "\n".join(lines)


def interleave(turns: Sequence[tuple[str, Callable[[], float]]], rounds: int) -> Rounds:
    taken = Rounds()
    for number in range(1, rounds + 1):
        note(f" round {number} of {rounds}")
        for label, measure in turns:
            taken.add(label, measure)
    return taken


Part = Callable[[argparse.Namespace], list[Figure]]


def parser_of(description: str | None, parts: Mapping[str, Part]) -> argparse.ArgumentParser:
    """For a benchmark of several parts, of which a person may name some."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=" ".join(parts))
    return parser


def measure(
    parser: argparse.ArgumentParser, options: argparse.Namespace, parts: Mapping[str, Part]
) -> int:
    """Takes the figures, shows the table; the exit code says whether all are as required."""
    if unknown := set(options.parts) - set(parts):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    note(machine())
    figures: list[Figure] = []
    for name in options.parts or parts:
        note(f"{name}:")
        try:
            figures += parts[name](options)
        except (NotMeasured, subprocess.SubprocessError) as error:
            figures.append(failed(name, "", error))
    print(table(figures))
    return int(any(figure.ok is False for figure in figures))
