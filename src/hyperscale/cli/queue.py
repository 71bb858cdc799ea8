"""`hyperscale queue`: single runs, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperscale.cli import flags, streams
from hyperscale.cli import scheduler_client as shared
from hyperscale.cli.scheduler_work import whole, work_of
from hyperscale.cli.shared_options import options_of
from hyperscale.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from hyperscale.scheduler.http.client import SchedulerClient

WHEN = "When (submit)"
HEAD = ("JOB", "NAME", "KIND", "STATE", "DUE", "TOOK", "WORKER", "ERROR")
ACTIONS = "submit, list, show, cancel, retry, logs, results, dead-letters, replay or drop"
LIMIT_DEFAULT = "20"
ERROR_CHARS = 60
SUMMARY = '{"schema":"hyperscale.results/'


@options_of(shared.which_scheduler)
@options_of(work_of, without=("here",))
def queue(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=ACTIONS)],
    name: Annotated[str, typer.Argument(metavar="JOB", help="its id; submit: a name for it")] = "",
    at: Annotated[
        str, typer.Option("--at", metavar="INSTANT", help="not now", rich_help_panel=WHEN)
    ] = "",
    key: Annotated[
        str,
        typer.Option(
            "--key", metavar="KEY", help="the same key makes no second job", rich_help_panel=WHEN
        ),
    ] = "",
    state: Annotated[
        str, typer.Option("--state", metavar="STATE", help="list: PENDING, FAILED ...")
    ] = "",
    schedule: Annotated[
        str, typer.Option("--schedule", metavar="NAME", help="list: runs of one schedule")
    ] = "",
    limit: Annotated[
        str, typer.Option("--limit", metavar="N", help="list: how many, newest first (20)")
    ] = LIMIT_DEFAULT,
    json: shared.Json = False,
    debug: flags.Debug = False,
    **given: Any,
) -> int:
    """Submit single jobs to the scheduler and look after them."""
    if action not in _SHOWN:
        raise BadInput(f"there is no action {action!r}", f"there are: {ACTIONS}")
    if not name and action not in ("list", "dead-letters"):
        what = "name for the job" if action == "submit" else "job"
        raise BadInput(
            f"there is no {what}", f"hyperscale queue {action} {what.split()[0].upper()}"
        )
    ask: Callable[[SchedulerClient], Any]
    if action == "submit":
        work = shared.called(work_of, given, here=shared.is_here(given))
        due = {"run_at": shared.instant("--at", at)} if at else {}

        def ask(client: SchedulerClient) -> Any:
            return client.submit_job(name=name, idempotency_key=key, **work, **due)

    elif action == "list":
        count = whole("--limit", limit)

        def ask(client: SchedulerClient) -> Any:
            return client.jobs(count, state=state.upper(), schedule_id=schedule)

    elif action == "dead-letters":
        letters = whole("--limit", limit)

        def ask(client: SchedulerClient) -> Any:
            return client.letters(letters)

    else:

        def ask(client: SchedulerClient) -> Any:
            return _ASKED[action](client, name)

    answer = shared.ask(given, ask)
    if json or action == "results":
        shared.show_json(answer)
    else:
        streams.say(_SHOWN[action](answer))
    return int(ExitCode.PASSED)


_ASKED: dict[str, Callable[[SchedulerClient, str], Any]] = {
    "show": lambda client, job_id: {**client.job(job_id), "history": client.history(job_id)},
    "cancel": lambda client, job_id: client.cancel_job(job_id),
    "retry": lambda client, job_id: client.retry_job(job_id),
    "logs": lambda client, job_id: client.logs(job_id),
    "results": lambda client, job_id: client.results(job_id),
    "replay": lambda client, job_id: client.replay_letter(job_id),
    "drop": lambda client, job_id: client.drop_letter(job_id),
}


def listed(jobs: list[dict[str, Any]]) -> str:
    from hyperscale.cli.tables import table

    if not jobs:
        return "no jobs"
    now = datetime.now(UTC)
    rows = [
        (
            one["id"],
            one["name"],
            one["kind"],
            _state(one),
            shared.when(one["scheduled_at"], now),
            _took(one["started_at"], one["completed_at"]),
            one["worker_id"] or "-",
            _short(one["failure_reason"]),
        )
        for one in jobs
    ]
    return "\n".join(table(HEAD, rows))


LETTERS_HEAD = ("JOB", "NAME", "KIND", "DIED", "RETRIES", "REASON")


def _letters(letters: list[dict[str, Any]]) -> str:
    from hyperscale.cli.tables import table

    if not letters:
        return "no dead letters"
    now = datetime.now(UTC)
    rows = [
        (
            one["job"]["id"],
            one["job"]["name"],
            one["job"]["kind"],
            shared.when(one["at"], now),
            str(one["job"]["retry_count"]),
            _short(one["reason"]),
        )
        for one in letters
    ]
    return "\n".join(
        [*table(LETTERS_HEAD, rows, {"RETRIES"}), "hyperscale queue replay JOB, or drop JOB"]
    )


def _state(one: dict[str, Any]) -> str:
    if one["cancel_requested"] and not one["completed_at"]:
        return f"{one['state']} (cancelling)"
    return f"{one['state']} (in line)" if one["waiting"] else str(one["state"])


def _took(started: str | None, ended: str | None) -> str:
    if not started or not ended:
        return "-"
    seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()
    return f"{seconds:.1f}s"


def _short(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= ERROR_CHARS else line[: ERROR_CHARS - 1] + "…"


def _submitted(answer: dict[str, Any]) -> str:
    begun = "submitted" if answer["created"] else "exists already under this key"
    lines = [f"job {answer['job_id']} {begun}: {answer['status']}"]
    if answer.get("message"):
        lines.append(answer["message"])
    return "\n".join(lines)


def _one(answer: dict[str, Any]) -> str:
    now = datetime.now(UTC)
    payload = " ".join(f"{key}={value}" for key, value in answer["payload"].items())
    attempts = [
        f"{shared.when(one['claimed_at'], now)}  {one['outcome']:<9} on {one['worker_id']}"
        f"  {_took(one['started_at'], one['ended_at'])}  {_short(one['error'])}".rstrip()
        for one in answer["history"]
    ]
    return shared.facts(
        [
            ("job", answer["id"]),
            ("name", answer["name"]),
            ("schedule", answer["schedule_id"]),
            ("runs", f"{answer['kind']} {payload}"),
            ("state", _state(answer)),
            ("progress", f"{answer['progress']:.0%}" if answer["state"] == "EXECUTING" else ""),
            ("error", answer["failure_reason"]),
            ("due", shared.when(answer["scheduled_at"], now)),
            ("started", shared.when(answer["started_at"], now)),
            ("ended", shared.when(answer["completed_at"], now)),
            ("worker", answer["worker_id"]),
            ("retries", f"{answer['retry_count']} of {answer['max_retries']}"),
            ("correlation", answer["correlation_id"]),
            ("attempts", "\n             ".join(attempts)),
        ]
    )


def _cancelled(answer: dict[str, Any]) -> str:
    if answer["state"] == "CANCELLED":
        return f"job {answer['id']} cancelled"
    return f"job {answer['id']} runs; its worker was asked to stop it"


def _log(answer: dict[str, Any]) -> str:
    """Without the line for programs that a load test's output begins with."""
    first, _, rest = answer["log"].partition("\n")
    text: str = rest.lstrip("\n") if first.startswith(SUMMARY) else answer["log"]
    return text or "the job wrote nothing"


_SHOWN: dict[str, Callable[[Any], str]] = {
    "submit": _submitted,
    "list": listed,
    "show": _one,
    "cancel": _cancelled,
    "retry": lambda answer: f"job {answer['id']} submitted, like {answer['retry_of']}",
    "logs": _log,
    "results": str,
    "dead-letters": _letters,
    "replay": lambda answer: f"job {answer['id']} submitted, like {answer['retry_of']}",
    "drop": lambda answer: f"dead letter {answer['job']['id']} dropped",
}
