"""`hyperscale schedule`: what runs by the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperscale.cli import flags, streams
from hyperscale.cli import scheduler_client as shared
from hyperscale.cli.scheduler_work import number, whole, work_of
from hyperscale.cli.shared_options import options_of
from hyperscale.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from hyperscale.scheduler.http.client import SchedulerClient

WHEN = "When (add, edit)"
HEAD = ("SCHEDULE", "WHEN", "ZONE", "RUNS", "NEXT", "LAST", "FIRED", "MISSED", "SKIPPED")
RIGHT = {"FIRED", "MISSED", "SKIPPED"}
ACTIONS = "add, list, show, edit, pause, resume, run, backfill, rm or history"
HISTORY_DEFAULT = "20"
LIST_DEFAULT = "1000"
NAMES_WORK = ("loadtest", "http", "python", "command", "kind")
"""What a schedule runs is replaced as a whole, so one of these says that it is."""


def _when(name: str, metavar: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel=WHEN)


@options_of(shared.which_scheduler)
@options_of(work_of, without=("here",))
def schedule(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=ACTIONS)],
    name: Annotated[str, typer.Argument(metavar="NAME", help="of the schedule")] = "",
    cron: Annotated[str, _when("--cron", "EXPR", 'in quotes: "0 2 * * *"')] = "",
    at: Annotated[str, _when("--at", "INSTANT", "once, instead of --cron")] = "",
    tz: Annotated[str, _when("--tz", "ZONE", "such as Europe/Berlin (UTC)")] = "",
    dst: Annotated[str, _when("--dst", "POLICY", "debian, literal or skip (debian)")] = "",
    misfire: Annotated[
        str, _when("--misfire", "POLICY", "skip, run_once or run_all ticks that were missed")
    ] = "",
    overlap: Annotated[
        str, _when("--overlap", "POLICY", "allow, skip, queue or cancel_previous")
    ] = "",
    jitter: Annotated[str, _when("--jitter", "SECONDS", "spread runs over this much")] = "",
    start: Annotated[str, _when("--from", "INSTANT", "no tick before; backfill: from here")] = "",
    end: Annotated[str, _when("--until", "INSTANT", "no tick from then on; backfill: to it")] = "",
    paused: Annotated[
        bool, typer.Option("--paused", help="do not run yet", rich_help_panel=WHEN)
    ] = False,
    limit: Annotated[
        str, typer.Option("--limit", metavar="N", help="list, history: how many (1000, 20)")
    ] = "",
    after: Annotated[
        str, typer.Option("--after", metavar="NAME", help="list: those behind this one")
    ] = "",
    json: shared.Json = False,
    debug: flags.Debug = False,
    **given: Any,
) -> int:
    """Make and look after schedules."""
    if action not in _SHOWN:
        raise BadInput(f"there is no action {action!r}", f"there are: {ACTIONS}")
    if not name and action != "list":
        raise BadInput("there is no name", f"hyperscale schedule {action} NAME")
    said = {
        "cron": cron,
        "run_at": shared.instant("--at", at) if at else "",
        "timezone": tz,
        "dst": dst,
        "misfire": {"policy": misfire} if misfire else "",
        "overlap": overlap,
        "jitter_s": number("--jitter", jitter) if jitter else "",
        "start_at": shared.instant("--from", start) if start else "",
        "end_at": shared.instant("--until", end) if end else "",
    }
    fields: dict[str, Any] = {key: value for key, value in said.items() if value != ""}
    if action == "add":
        if not cron and not at:
            raise BadInput("there is no time", "give --cron or --at")
        work = shared.called(work_of, given, here=shared.is_here(given))
        fields |= {"paused": True} if paused else {}
        answer: Any = shared.ask(
            given, lambda client: client.create_schedule(id=name, job=work, **fields)
        )
    elif action == "edit":
        if any(given.get(option) for option in NAMES_WORK):
            fields["job"] = shared.called(work_of, given, here=shared.is_here(given))
        if not fields:
            raise BadInput("there is nothing to change", "give --cron, --tz, --loadtest ...")
        answer = shared.ask(given, lambda client: client.edit_schedule(name, **fields))
    elif action == "backfill":
        if not start or not end:
            raise BadInput("there is no time to fill", "give --from and --until")
        span = (fields["start_at"], fields["end_at"])
        answer = shared.ask(given, lambda client: client.backfill_schedule(name, *span))
    elif action == "list":
        count = whole("--limit", limit or LIST_DEFAULT)
        answer = shared.ask(given, lambda client: client.schedules(count, after=after))
    else:
        count = whole("--limit", limit or HISTORY_DEFAULT)
        answer = shared.ask(given, lambda client: _ASKED[action](client, name, count))
    if json:
        shared.show_json(answer)
    else:
        streams.say(_SHOWN[action](answer))
    return int(ExitCode.PASSED)


_ASKED: dict[str, Callable[[SchedulerClient, str, int], Any]] = {
    "show": lambda client, name, limit: _with_preview(client, name),
    "pause": lambda client, name, limit: client.pause_schedule(name),
    "resume": lambda client, name, limit: client.resume_schedule(name),
    "run": lambda client, name, limit: client.run_schedule(name),
    "rm": lambda client, name, limit: client.delete_schedule(name),
    "history": lambda client, name, limit: _history(client, name, limit),
}


def _with_preview(client: SchedulerClient, name: str) -> dict[str, Any]:
    return {**client.schedule(name), "coming": client.preview_schedule(name, 5)}


def _history(client: SchedulerClient, name: str, limit: int) -> list[dict[str, Any]]:
    runs = client.schedule_history(name, limit)
    if not runs:
        client.schedule(name)  # or it is unknown
    return runs


def _added(answer: dict[str, Any]) -> str:
    lines = [f"schedule {answer['id']} added; {_next(answer)}"]
    if answer.get("message"):
        lines.append(answer["message"])
    return "\n".join(lines)


def _next(answer: dict[str, Any]) -> str:
    if answer["paused"]:
        return "it is paused"
    if not answer["next_run"]:
        return "it has no further run"
    return f"next run {shared.when(answer['next_run'], datetime.now(UTC))}"


def _listed(answer: list[dict[str, Any]]) -> str:
    from hyperscale.cli.tables import table

    if not answer:
        return "no schedules; hyperscale schedule add makes one"
    now = datetime.now(UTC)
    rows = [
        (
            one["id"],
            one["cron"] or "once",
            one["timezone"],
            one["job"]["kind"],
            "paused" if one["paused"] else shared.when(one["next_run"], now),
            shared.when(one["last_tick"], now),
            *(str(one[key]) for key in ("fired", "missed", "skipped")),
        )
        for one in answer
    ]
    more = [f"more behind {rows[-1][0]}: --after, or --limit"] if len(rows) >= 1000 else []
    return "\n".join([*table(HEAD, rows, RIGHT), *more])


def _one(answer: dict[str, Any]) -> str:
    now = datetime.now(UTC)
    job = answer["job"]
    coming = [shared.when(run, now) for run in answer["coming"]]
    return shared.facts(
        [
            ("schedule", answer["id"]),
            ("when", answer["cron"] or f"once at {answer['run_at']}"),
            ("zone", f"{answer['timezone']} (clock changes: {answer['dst']})"),
            ("state", "paused" if answer["paused"] else "active"),
            ("runs", f"{job['kind']} {_brief(job['payload'])}"),
            ("overlap", answer["overlap"]),
            ("misfire", answer["misfire"]["policy"]),
            ("jitter", f"{answer['jitter_s']:g} s" if answer["jitter_s"] else ""),
            ("priority", str(job["priority"])),
            ("retries", str(job["max_retries"])),
            ("ticks", "{fired} fired, {missed} missed, {skipped} skipped".format(**answer)),
            ("last", shared.when(answer["last_tick"], now)),
            ("last job", answer["last_job_id"]),
            ("next", "\n          ".join(coming)),
        ]
    )


def _brief(payload: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in payload.items())


def _ran(answer: dict[str, Any]) -> str:
    return "\n".join(f"job {job} submitted" for job in answer["jobs"]) or "nothing was started"


RUNS_HEAD = ("ENDED", "STATE", "TOOK", "RATE", "P95", "FAILED", "WORKER", "JOB", "ERROR")


def _runs(answer: list[dict[str, Any]]) -> str:
    from hyperscale.cli.tables import table

    if not answer:
        return "no run has ended yet"
    now = datetime.now(UTC)
    rows = [
        (
            shared.when(one["ended_at"], now),
            one["status"],
            "-" if one["duration_s"] is None else f"{one['duration_s']:.1f}s",
            *_measured(one["figures"]),
            one["worker_id"] or "-",
            one["job_id"],
            one["error"].partition("\n")[0][:60],
        )
        for one in answer
    ]
    return "\n".join(table(RUNS_HEAD, rows, {"TOOK", "RATE", "P95", "FAILED"}))


def _measured(figures: dict[str, float]) -> tuple[str, str, str]:
    """Of a load test."""
    if "rate" not in figures:
        return "-", "-", "-"
    p95 = figures.get("p95_s")
    return (
        f"{figures['rate']:,.1f}/s",
        "-" if p95 is None else f"{p95 * 1000:,.1f}ms",
        f"{figures.get('failed_share', 0.0):.2%}",
    )


_SHOWN: dict[str, Callable[[Any], str]] = {
    "add": _added,
    "list": _listed,
    "show": _one,
    "pause": lambda answer: f"schedule {answer['id']} is paused",
    "resume": lambda answer: f"schedule {answer['id']} goes on; {_next(answer)}",
    "edit": lambda answer: f"schedule {answer['id']} changed; {_next(answer)}",
    "run": _ran,
    "backfill": _ran,
    "rm": lambda answer: f"schedule {answer['id']} removed; jobs it made live on",
    "history": _runs,
}
