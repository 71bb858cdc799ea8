"""What `schedule`, `job` and `scheduler doctor` share: which scheduler, what to run, how to show.

Values arrive as text and are read here, with one sentence for each that does not fit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

import typer

from hyperscale.cli import streams
from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.scheduler.client import SchedulerClient

T = TypeVar("T")

WHICH = "Which scheduler"
WORK = "What to run"
LIMITS = "How to run it"

Url = Annotated[
    str,
    typer.Option(
        "--url", metavar="URL", help="where it is (http://127.0.0.1:8090)", rich_help_panel=WHICH
    ),
]
Token = Annotated[
    str,
    typer.Option(
        "--token", metavar="TOKEN", help="HYPERSCALE_SCHEDULER_TOKEN", rich_help_panel=WHICH
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


def _work(name: str, metavar: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel=WORK)


def _limit(name: str, metavar: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel=LIMITS)


Loadtest = Annotated[str, _work("--loadtest", "FILE", "a test file, as hyperscale run takes it")]
Http = Annotated[str, _work("--http", "URL", "a request")]
Python = Annotated[str, _work("--python", "MOD:FUNC", "a function the workers allow")]
Command = Annotated[str, _work("--command", "WORDS", "a program, where workers allow it")]
Kind = Annotated[str, _work("--kind", "NAME", "another executor, with --payload")]
Payload = Annotated[
    list[str] | None, _work("--payload", "K=V", "more for the executor; repeatable")
]
Arg = Annotated[
    list[str] | None, _work("--arg", "WORD", "further words for --loadtest; repeatable")
]
Priority = Annotated[str, _limit("--priority", "N", "0 first to 2000 last, or high, low ... (500)")]
Timeout = Annotated[str, _limit("--timeout", "SECONDS", "kill it after this")]
Retries = Annotated[str, _limit("--retries", "N", "after a failure (3)")]
Capability = Annotated[
    list[str] | None, _limit("--capability", "NAME", "workers must have it; repeatable")
]
Tag = Annotated[list[str] | None, _limit("--tag", "K=V", "label it; repeatable")]


def ask(url: str, token: str, question: Callable[[SchedulerClient], T]) -> T:
    with client_of(url, token) as client:
        return question(client)


def client_of(url: str, token: str) -> SchedulerClient:
    from hyperscale.scheduler.client import DEFAULT_URL, SchedulerClient

    where = url or os.environ.get("HYPERSCALE_SCHEDULER_URL", "") or DEFAULT_URL
    return SchedulerClient(where, token or os.environ.get("HYPERSCALE_SCHEDULER_TOKEN", ""))


def work_of(
    url: str,
    *,
    loadtest: str,
    http: str,
    python: str,
    command: str,
    kind: str,
    payload: list[str] | None,
    arg: list[str] | None,
    priority: str,
    timeout: str,
    retries: str,
    capability: list[str] | None,
    tag: list[str] | None,
) -> dict[str, Any]:
    """The part of a request that says what to run."""
    given = {"loadtest": loadtest, "http": http, "python": python, "command": command}
    named = [name for name, value in given.items() if value]
    if len(named) + bool(kind) != 1:
        raise BadInput(
            "one thing is run" if named or kind else "there is nothing to run",
            "give one of --loadtest, --http, --python, --command or --kind",
        )
    if arg and not loadtest:
        raise BadInput("--arg is for --loadtest")
    values: dict[str, Any] = {}
    if loadtest:
        values["file"] = _path(loadtest, url)
        if arg:
            values["args"] = arg
    elif http:
        values["url"] = http
    elif python:
        values["call"] = python
    elif command:
        values["command"] = command
    work: dict[str, Any] = {
        "kind": kind or named[0],
        "payload": {**values, **pairs("--payload", payload)},
        "capabilities": capability or [],
        "tags": pairs("--tag", tag),
    }
    if priority:
        work["priority"] = _priority(priority)
    if timeout:
        work["timeout_s"] = number("--timeout", timeout)
    if retries:
        work["max_retries"] = whole("--retries", retries)
    return work


def _path(file: str, url: str) -> str:
    """A scheduler on this machine may have been started elsewhere; another machine has its own
    files."""
    where = url or os.environ.get("HYPERSCALE_SCHEDULER_URL", "")
    local = not where or urlsplit(where).hostname in ("localhost", "127.0.0.1", "::1")
    if not local:
        return file
    if not os.path.isfile(file):
        raise BadInput(f"there is no test file {file}", "hyperscale new FILE writes one")
    return os.path.abspath(file)


def _priority(text: str) -> int:
    from hyperscale.scheduler.model.spec import PRIORITIES

    named = PRIORITIES.get(text.lower())
    return whole("--priority", text) if named is None else named


def pairs(option: str, items: Iterable[str] | None) -> dict[str, str]:
    found = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise BadInput(f"{option} takes KEY=VALUE, not {item!r}")
        found[key] = value
    return found


def whole(option: str, text: str) -> int:
    if not text.isdecimal():
        raise BadInput(f"{option} takes a whole number, not {text!r}")
    return int(text)


def number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{option} takes seconds, not {text!r}") from None


def instant(option: str, text: str) -> str:
    """A time without an offset is local time."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise BadInput(
            f"{option} takes an instant, not {text!r}", "such as 2027-01-31T06:00Z"
        ) from None


def show_json(data: object) -> None:
    import json

    streams.say(json.dumps(data, indent=2, ensure_ascii=False))


def when(text: str | None, now: datetime) -> str:
    """The local time, and how far away it is."""
    from hyperscale.cli.tables import age

    if not text:
        return "-"
    moment = datetime.fromisoformat(text)
    seconds = (moment - now).total_seconds()
    away = f"in {age(seconds)}" if seconds >= 0 else f"{age(-seconds)} ago"
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S} ({away})"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Name and value, one a line; those without a value are left out."""
    said = [(name, value) for name, value in rows if value]
    width = max(len(name) for name, _ in said)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in said)
