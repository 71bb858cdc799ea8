"""What many runs together say: which failed, which faults were really met, how fast it went."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hyperscale.sim.runner import Report
from hyperscale.sim.scenario import Scenario

FAILURES_SHOWN = 20


@dataclass(slots=True)
class Summary:
    scenario: type[Scenario]
    nodes: int = 0
    """0: the scenario decides."""
    planted_bug: str = ""
    seeds: int = 0
    virtual_s: float = 0.0
    busy_s: float = 0.0
    elapsed_s: float = 0.0
    events: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    hit_seeds: Counter[str] = field(default_factory=Counter)
    failed: list[Report] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, report: Report) -> None:
        self.seeds += 1
        self.virtual_s += report.virtual_s
        self.busy_s += report.real_s
        self.events += report.events
        self.hits.update(report.coverage)
        self.hit_seeds.update(report.coverage.keys())
        for name, value in report.figures.items():
            self.figures.setdefault(name, []).append(value)
        if not report.ok:
            self.failed.append(report)

    @property
    def speed(self) -> float:
        """Virtual seconds for each second of one core."""
        return self.virtual_s / self.busy_s if self.busy_s else 0.0

    def never_hit(self) -> list[str]:
        """Faults the scenario allows that have touched nothing in any run."""
        return [name for name in self.scenario.faults if not self.hits[name]]

    def replay(self, seed: int) -> str:
        """The command that tells one history again, line by line."""
        nodes = f" --nodes {self.nodes}" if self.nodes else ""
        option = f" --bug {self.planted_bug}" if self.planted_bug else ""
        return f"hyperscale sim {self.scenario.name} --seeds {seed}{nodes}{option} --trace"

    def as_data(self) -> dict[str, object]:
        return {
            "scenario": self.scenario.name,
            "nodes": self.nodes,
            "bug": self.planted_bug,
            "seeds": self.seeds,
            "failed": [
                {
                    "seed": report.seed,
                    "failures": list(report.failures),
                    "faults": list(report.faults),
                    "trace_hash": report.trace_hash,
                    "replay": self.replay(report.seed),
                }
                for report in self._failed_in_order()
            ],
            "virtual_s": self.virtual_s,
            "elapsed_s": self.elapsed_s,
            "virtual_per_core_s": self.speed,
            "events": self.events,
            "coverage": {
                name: {"hits": hits, "seeds": self.hit_seeds[name]}
                for name, hits in sorted(self.hits.items())
            },
            "never_hit": self.never_hit(),
            "figures": {
                name: {"min": min(values), "mean": sum(values) / len(values), "max": max(values)}
                for name, values in sorted(self.figures.items())
            },
        }

    def lines(self) -> list[str]:
        return [*self._verdict(), *self._failures(), *self._figures(), *self._coverage()]

    def _failed_in_order(self) -> list[Report]:
        return sorted(self.failed, key=lambda report: report.seed)

    def _verdict(self) -> list[str]:
        outcome = f"{len(self.failed):,} failed" if self.failed else "all passed"
        rate = self.seeds / self.elapsed_s if self.elapsed_s else 0.0
        count = self.nodes or self.scenario.nodes_default
        nodes = f"{count} {_plural('node', count)}" if count else "nodes drawn by the seed"
        bug = f" with the planted bug {self.planted_bug}" if self.planted_bug else ""
        return [
            f"{self.scenario.name}{bug}: {self.seeds:,} {_plural('seed', self.seeds)}, "
            f"{nodes}, {outcome}",
            f"  {self.elapsed_s:.1f} s, {rate:,.1f} seeds/s, {self.virtual_s:,.0f} s of cluster "
            f"life, {self.speed:,.0f} x real time on one core",
        ]

    def _failures(self) -> list[str]:
        if not self.failed:
            return []
        lines = ["", "Failed seeds:"]
        for report in self._failed_in_order()[:FAILURES_SHOWN]:
            lines += [f"  {report.seed}: {failure}" for failure in report.failures[:3]]
            lines.append(f"      {self.replay(report.seed)}")
        if len(self.failed) > FAILURES_SHOWN:
            others = self._failed_in_order()[FAILURES_SHOWN:]
            seeds = ", ".join(str(report.seed) for report in others[:100])
            lines.append(f"  and {len(others)} more: {seeds}")
        return lines

    def _figures(self) -> list[str]:
        if not self.figures:
            return []
        lines = ["", f"  {'measured':<28}{'min':>12}{'mean':>12}{'max':>12}"]
        for name, values in sorted(self.figures.items()):
            mean = sum(values) / len(values)
            lines.append(f"  {name:<28}{min(values):>12,.3f}{mean:>12,.3f}{max(values):>12,.3f}")
        return lines

    def _coverage(self) -> list[str]:
        if not self.hits:
            return []
        lines = ["", f"  {'fault':<20}{'hits':>12}{'seeds':>10}"]
        for name, hits in sorted(self.hits.items()):
            lines.append(f"  {name:<20}{hits:>12,}{self.hit_seeds[name]:>10,}")
        if missing := self.never_hit():
            lines.append(f"  never hit: {', '.join(missing)}")
        return lines


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"
