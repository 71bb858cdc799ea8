"""Looking after a scheduler: what is wrong, what its logs tell, its audit log, stopping it all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hyperscale.cli import scheduler_client as shared
from hyperscale.cli import streams
from hyperscale.errors import BadInput, ExitCode, RunFailed

if TYPE_CHECKING:
    from hyperscale.scheduler.http.client import SchedulerClient
    from hyperscale.scheduler.telemetry.journal import Entry, JobSummary, Journal

PANEL = "Looking after it"
FAILURES_SHOWN = 10
AUDIT_SHOWN = 50
WORKERS_SHOWN = 10_000
AUDIT_HEAD = ("SEQUENCE", "AT", "ACTOR", "ROLE", "ACTION", "TARGET", "OUTCOME", "SOURCE", "DETAIL")


@dataclass(frozen=True)
class Asked:
    """What the actions are given."""

    which: Mapping[str, Any]
    json: bool
    files: Sequence[str]
    reason: str
    cancel_running: bool
    job: str


def _doctor(asked: Asked) -> int:
    answer = shared.ask(asked.which, lambda client: client.doctor())
    if asked.json:
        shared.show_json(answer)
    else:
        streams.say(_findings(answer["findings"]))
    return _health(answer["findings"])


def _findings(findings: Sequence[Mapping[str, Any]]) -> str:
    if not findings:
        return "nothing is stuck, drifting, starving or skewed"
    return "\n".join(
        f"{one['severity']}: {one['name']}: {one['sentence']}\n  {one['advice']}"
        for one in findings
    )


def _health(findings: Sequence[Mapping[str, Any]]) -> int:
    ill = any(one["severity"] == "critical" for one in findings)
    return int(ExitCode.FAILED if ill else ExitCode.PASSED)


def _audit(asked: Asked) -> int:
    """The newest rows, oldest first, as in the book."""
    from hyperscale.cli.tables import table

    def newest(client: SchedulerClient) -> list[dict[str, Any]]:
        book = client.verify_audit()
        return client.audit(max(0, book["first"] + book["rows"] - 1 - AUDIT_SHOWN), AUDIT_SHOWN)

    rows = shared.ask(asked.which, newest)
    if asked.json:
        shared.show_json(rows)
    else:
        cells = [[str(row[name.lower()]) for name in AUDIT_HEAD] for row in rows]
        streams.say("\n".join(table(AUDIT_HEAD, cells)) if rows else "nobody has done anything yet")
    return int(ExitCode.PASSED)


def _verify(asked: Asked) -> int:
    answer = shared.ask(asked.which, lambda client: client.verify_audit())
    if asked.json:
        shared.show_json(answer)
    elif answer["good"]:
        streams.say(f"good: {answer['rows']} rows of the audit log follow from each other")
    if not answer["good"]:
        raise RunFailed(
            f"the audit log is broken at row {answer['broken_at']}",
            "that row or one before it was changed; compare with a backup",
        )
    return int(ExitCode.PASSED)


def _stop(asked: Asked) -> int:
    answer = shared.ask(
        asked.which,
        lambda client: client.emergency_stop(asked.reason, cancel_running=asked.cancel_running),
    )
    if asked.json:
        shared.show_json(answer)
    else:
        running = "is being cancelled" if answer["cancel_running"] else "may finish"
        streams.say(
            f"stopped by {answer['actor']}: nothing starts, what runs {running}\n"
            "hyperscale scheduler go ends it"
        )
    return int(ExitCode.PASSED)


def _go(asked: Asked) -> int:
    answer = shared.ask(asked.which, lambda client: client.emergency_resume())
    if asked.json:
        shared.show_json(answer)
    else:
        ended = answer["stopped"]
        streams.say("the stop is over, jobs start again" if ended else "nothing was stopped")
    return int(ExitCode.PASSED)


def _explain(asked: Asked) -> int:
    from dataclasses import asdict

    from hyperscale.scheduler.telemetry.analysis import diagnose
    from hyperscale.scheduler.telemetry.journal import failures, judge, read

    if not asked.files:
        raise BadInput("there is no log", "hyperscale scheduler explain FILE...")
    journal = read(_lines(asked.files))
    if not journal.entries:
        raise BadInput(
            "there is not one line of a scheduler's log",
            journal.bad[0] if journal.bad else "hyperscale scheduler --log FILE --log-level info",
        )
    if asked.job:
        entries_of_job = journal.about(asked.job)
        if not entries_of_job:
            raise BadInput(f"the logs do not speak of {asked.job!r}")
        verdict = judge(entries_of_job, journal.end)
        if asked.json:
            entries = [{**asdict(one), "at": _moment(one)} for one in entries_of_job]
            shared.show_json({"verdict": asdict(verdict), "entries": entries})
        else:
            streams.say("\n".join([*map(_line, entries_of_job), "", _verdict(asked.job, verdict)]))
        return int(ExitCode.PASSED)
    findings = [asdict(one) for one in diagnose(journal)]
    failed = failures(journal)
    if asked.json:
        shared.show_json(
            {
                "findings": findings,
                "failures": [{"job": job, **asdict(verdict)} for job, verdict in failed],
                "lines": len(journal.entries),
                "unreadable": journal.bad_total,
            }
        )
    else:
        streams.say("\n".join(_report(journal, findings, failed)))
    return _health(findings)


def _lines(files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name in files:
        try:
            with open(sys.stdin.fileno() if name == "-" else name, "rb") as file:
                for number, line in enumerate(file, 1):
                    yield f"{name}:{number}", line
        except OSError as error:
            raise BadInput(f"the log {name} cannot be read: {error.strerror}") from error


def _report(
    journal: Journal,
    findings: Sequence[Mapping[str, Any]],
    failed: Sequence[tuple[str, JobSummary]],
) -> Iterator[str]:
    entries = journal.entries
    nodes = sorted({one.node for one in entries} - {""})
    jobs = len({one.job for one in entries} - {""})
    yield (
        f"{len(entries)} lines of {len(nodes)} processes about {jobs} jobs, "
        f"{_moment(entries[0])} to {_moment(entries[-1])}"
    )
    if journal.bad_total:
        yield f"{journal.bad_total} lines cannot be read, such as {journal.bad[0]}"
    yield ""
    yield _findings(findings) if findings else "the logs tell of nothing wrong with the whole"
    if failed:
        yield f"\n{len(failed)} jobs did not go well:"
        for job, verdict in failed[:FAILURES_SHOWN]:
            yield _verdict(job, verdict)
        if len(failed) > FAILURES_SHOWN:
            yield f"and {len(failed) - FAILURES_SHOWN} more (--json has them all)"


def _verdict(job: str, verdict: JobSummary) -> str:
    lines = [f"{job}: {verdict.kind}{f': {verdict.cause}' if verdict.cause else ''}"]
    lines.append(f"  {verdict.duration_s:g} s through {' > '.join(verdict.path)}")
    lines += [f"  saw {symptom}" for symptom in verdict.symptoms]
    if verdict.advice:
        lines.append(f"  {verdict.advice}")
    return "\n".join(lines)


def _line(one: Entry) -> str:
    who = f"{one.node}/{one.component}" if one.node else one.component
    result = one.text("operation_result")
    return f"{_moment(one)}  {who}  {one.event}{f' {result}' if result else ''}  {one.why}".rstrip()


def _moment(one: Entry) -> str:
    from hyperscale.scheduler.instants import moment_of

    return f"{moment_of(one.at):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


WORKERS_HEAD = ("WORKER", "STATE", "RUNS", "SLOTS", "KINDS", "HEARD", "ADDRESS")


def _workers(asked: Asked) -> int:
    from datetime import UTC, datetime

    from hyperscale.cli.tables import table

    workers = shared.ask(asked.which, lambda client: client.workers(WORKERS_SHOWN))
    if asked.json:
        shared.show_json(workers)
        return int(ExitCode.PASSED)
    now = datetime.now(UTC)
    rows = [
        (
            one["id"],
            one["state"],
            str(one["current_jobs"]),
            str(one["capacity"]),
            one["metadata"].get("kinds", "any"),
            shared.when(one["last_heartbeat"], now),
            one["address"] or "-",
        )
        for one in workers
    ]
    streams.say("\n".join(table(WORKERS_HEAD, rows, {"RUNS", "SLOTS"})) if rows else "no workers")
    return int(ExitCode.PASSED)


def _worker_named(asked: Asked) -> str:
    if len(asked.files) != 1:
        raise BadInput("there is no worker", "hyperscale scheduler drain WORKER")
    return asked.files[0]


def _drain(asked: Asked) -> int:
    name = _worker_named(asked)
    answer = shared.ask(asked.which, lambda client: client.drain_worker(name))
    return _moved(asked, answer, "gets no more jobs; hyperscale scheduler undrain takes it back")


def _undrain(asked: Asked) -> int:
    name = _worker_named(asked)
    answer = shared.ask(asked.which, lambda client: client.undrain_worker(name))
    return _moved(asked, answer, "gets jobs again")


def _moved(asked: Asked, answer: Mapping[str, Any], said: str) -> int:
    if asked.json:
        shared.show_json(answer)
    else:
        streams.say(f"worker {answer['id']} is {answer['state']}: it {said}")
    return int(ExitCode.PASSED)


ACTIONS: dict[str, Callable[[Asked], int]] = {
    "doctor": _doctor,
    "explain": _explain,
    "audit": _audit,
    "verify": _verify,
    "stop": _stop,
    "go": _go,
    "workers": _workers,
    "drain": _drain,
    "undrain": _undrain,
}
