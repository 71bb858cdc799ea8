"""A round as text: its schedule, what was told, what was served in each second, what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.chaos.judge import Evidence, Finding, by_worker
from tests.chaos.schedule import Round


def write_lines(file: Path, lines: Iterable[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines))


def summary(evidence: Evidence) -> str:
    report = evidence.report
    counts = f"{len(evidence.hits)} served, {sum(report.counts.values())} reported"
    return f"exit {report.exit_code}, coverage {report.coverage:.1%}, {counts}"


def lines(round_: Round, evidence: Evidence, findings: Sequence[Finding]) -> list[str]:
    report = evidence.report
    return [
        round_.name,
        *round_.sentences(),
        ", ".join(f"{role} {name}" for role, name in evidence.names.items() if role != name),
        "",
        *(f"FOUND {one.rule}: {one.text}" for one in findings),
        *([] if findings else ["nothing found"]),
        "",
        *_told(evidence),
        *(
            f"done: {harm.node} {harm.kind} from {harm.from_s:.1f} to {harm.until_s:.1f} s"
            for harm in evidence.harms
        ),
        f"a majority of managers and a worker lived: {evidence.majority_and_worker_live}",
        f"CPU of this machine in use: {evidence.cpu_used:.0%}",
        "",
        *_seconds(evidence),
        "",
        "the client said:",
        *report.said.strip().splitlines()[-40:],
    ]


def _told(evidence: Evidence) -> list[str]:
    report = evidence.report
    served = by_worker(evidence.hits)
    pairs = sorted({*served, *report.counts})
    return [
        f"exit {report.exit_code} at {report.told_s:.1f} s, coverage {report.coverage:.2%}",
        *(f"lost: {sentence}" for sentence in report.lost),
        *(
            f"{workflow} on {worker}: {served.get((workflow, worker), 0)} served, "
            f"{report.counts.get((workflow, worker), 0)} reported"
            for workflow, worker in pairs
        ),
        *(f"{load.name}: {load.planned:g} planned" for load in evidence.job.loads),
    ]


def _seconds(evidence: Evidence) -> list[str]:
    """Requests served, by second and worker."""
    keys = sorted(by_worker(evidence.hits))
    counts = Counter((int(hit.at_s), (hit.workflow, hit.worker)) for hit in evidence.hits)
    heads = [f"{workflow}/{worker}" for workflow, worker in keys]
    width = max((len(head) for head in heads), default=0) + 2
    table = ["second" + "".join(head.rjust(width) for head in heads)]
    last = max((second for second, _ in counts), default=-1)
    table += [
        f"{second:6}" + "".join(str(counts[second, key]).rjust(width) for key in keys)
        for second in range(last + 1)
    ]
    return table
