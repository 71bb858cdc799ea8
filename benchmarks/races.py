"""Tools in turns under the same load, compared by requests per CPU second and by rate.

CPU time is that of all processes of a tool, in the kernel too, over a window in the middle of the
load; the target counts the requests. It is what a person pays for a load, and other work on the
machine changes it less than the rate. The rate says what one core delivers.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from contenders import Contender, Load, Window, measured
from harness import Rounds, note
from targets import Target

Turn = tuple[str, Contender, Load]  # with the label it is told under


@dataclass(frozen=True)
class Bound:
    """The least a ratio must be."""

    at_least: float
    aim: float | None = None
    by: str = "CPU"  # or "rate"

    def __str__(self) -> str:
        aim = f" (aim {self.aim:g})" if self.aim else ""
        return f"≥ {self.at_least:g} × by {self.by}{aim}"


@dataclass(frozen=True)
class Comparison:
    """A row of the table. `ok` is None where nothing is required or nothing could be measured."""

    what: str
    against: str
    required: str
    by_cpu: str
    by_rate: str
    ok: bool | None


@dataclass
class Race:
    """What each contender reached, round by round, by both measures."""

    cpu: Rounds = field(default_factory=Rounds)
    rate: Rounds = field(default_factory=Rounds)

    def take(self, label: str, measure: Callable[[], Window]) -> None:
        windows: list[Window] = []

        def per_cpu_second() -> float:
            windows.append(measure())
            return windows[0].per_cpu_second

        self.cpu.add(label, per_cpu_second)
        rate = windows[0].rate if windows else None
        self.rate.values.setdefault(label, []).append(rate)
        self.rate.reasons = self.cpu.reasons

    def compare(
        self, what: str, ours: str, theirs: str, required: Bound | None = None
    ) -> Comparison:
        ok: bool | None = None
        if required and ours in self.cpu.reasons:
            ok = False  # our own side could not be measured: no better than a figure missed
        elif required and theirs not in self.cpu.reasons:
            rounds = self.cpu if required.by == "CPU" else self.rate
            ok = statistics.median(rounds.ratios(ours, theirs)) >= required.at_least
        by_cpu, by_rate = self.cpu.ratio(ours, theirs), self.rate.ratio(ours, theirs)
        return Comparison(what, theirs, str(required or ""), by_cpu, by_rate, ok)

    def _shares(self, label: str) -> list[float]:
        pairs = zip(self.rate.values[label], self.cpu.values[label], strict=True)
        return [rate / cpu for rate, cpu in pairs if rate is not None and cpu]

    def report(self) -> str:
        """A contender with much less than a whole core was kept waiting, by the target or by
        other work on the machine: its rate says little, and fixed costs weigh more."""
        lines = ["| | requests per CPU second | requests/s | of a core |", "|---|---|---|---|"]
        for label in self.cpu.values:
            if reason := self.cpu.reasons.get(label):
                lines.append(f"| {label} | not measured: {reason} | | |")
            else:
                cpu, rate = _spread(self.cpu, label), _spread(self.rate, label)
                share = statistics.median(self._shares(label))
                lines.append(f"| {label} | {cpu} | {rate} | {share:.0%} |")
        return "\n".join(lines)


def _spread(rounds: Rounds, label: str) -> str:
    seen = [value for value in rounds.values[label] if value is not None]
    return f"{statistics.median(seen):,.0f} ({min(seen):,.0f}–{max(seen):,.0f})"


def race(target: Target, turns: Sequence[Turn], rounds: int) -> Race:
    taken = Race()
    for number in range(1, rounds + 1):
        note(f" round {number} of {rounds}")
        for label, contender, load in turns:
            taken.take(label, functools.partial(measured, contender, load, target))
    return taken


def comparisons_table(comparisons: Sequence[Comparison]) -> str:
    verdict = {True: "ok", False: "**not**", None: "–"}
    lines = ["| figure | against | required | by CPU | by rate | |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {c.what} | {c.against} | {c.required} | {c.by_cpu} | {c.by_rate} | {verdict[c.ok]} |"
        for c in comparisons
    ]
    return "\n".join(lines)
