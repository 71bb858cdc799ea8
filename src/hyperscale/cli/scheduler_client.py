"""Common to `schedule`, `queue` and `scheduler`: which scheduler is asked, how it answers.

`which_scheduler` lends its options to the commands, and `ask` is given them back.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

import typer

from hyperscale.cli import flags, streams, tables
from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.config.sections import Reading
    from hyperscale.scheduler.http.client import SchedulerClient

T = TypeVar("T")

WHICH = "Which scheduler"


def _which(name: str, metavar: str | None, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel=WHICH)


Url = Annotated[str, _which("--url", "URL", "where it is (http://127.0.0.1:8090)")]
Token = Annotated[
    str, _which("--token", "TOKEN", "HYPERSCALE_SCHEDULER_TOKEN; else the one made on this machine")
]
Ca = Annotated[str, _which("--ca", "FILE", "PEM authorities its certificate may be of")]
PlainHttp = Annotated[
    bool, _which("--plain-http", None, "tokens may travel unencrypted to other machines")
]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


def which_scheduler(
    url: Url = "",
    token: Token = "",
    ca: Ca = "",
    plain_http: PlainHttp = False,
    config: flags.Config = None,
    show_settings: flags.ShowSettings = False,
) -> None:
    """The options that say which scheduler is meant, shared by commands (`shared_options`)."""


def is_here(given: Mapping[str, Any]) -> bool:
    from hyperscale.scheduler.addresses import is_loopback

    return is_loopback(urlsplit(_reading(given).of("scheduler", "url").value).hostname or "")


def client_of(given: Mapping[str, Any]) -> SchedulerClient:
    """By the options of `which_scheduler`, the environment and `[scheduler]` of the config file."""
    from hyperscale.scheduler.http.client import SchedulerClient

    reading = _reading(given)
    if given.get("show_settings"):
        raise typer.Exit(tables.show_settings(reading.rows()))
    url, token, ca, plain_http = (
        reading.of("scheduler", name).value for name in ("url", "token", "ca", "plain_http")
    )
    return SchedulerClient(url, token or None, ca=ca, plain_http=plain_http)


def _reading(given: Mapping[str, Any]) -> Reading:
    from hyperscale.config.sections import Reading, sources_of
    from hyperscale.scheduler.http.settings import ASKING_SECTIONS

    names = inspect.signature(which_scheduler).parameters  # others mean the work, as --command
    mine = {name: given.get(name) for name in names}
    return Reading(sources_of(mine, os.environ), ASKING_SECTIONS)


def called(function: Callable[..., T], given: Mapping[str, Any], **more: Any) -> T:
    """With those of a command's options that it lent."""
    names = inspect.signature(function).parameters
    return function(**{name: given[name] for name in names if name in given}, **more)


def ask(given: Mapping[str, Any], question: Callable[[SchedulerClient], T]) -> T:
    from hyperscale.scheduler.http.client import Refused

    with client_of(given) as client:
        try:
            return question(client)
        except Refused as refused:
            if refused.status == 401:
                refused.hint = "give one with --token or HYPERSCALE_SCHEDULER_TOKEN"
            complaints = [_complaint(one) for one in refused.problem.get("details", ())]
            if refused.problem.get("code") != "invalid" or not complaints:
                raise
            raise BadInput("; ".join(complaints)) from refused


def _complaint(problem: Mapping[str, Any]) -> str:
    """About a field of the request, in the name it was typed under."""
    field = str(problem["path"]).removeprefix("/body").removeprefix("/query")
    field = field.removeprefix("/job").strip("/")
    option = _OPTIONS.get(field, "--" + field.split("/")[0].replace("_", "-"))
    message = str(problem["message"])
    return f"{option}: {message[:1].lower()}{message[1:]}"


_OPTIONS = {
    "id": "NAME",
    "name": "NAME",
    "timezone": "--tz",
    "start_at": "--from",
    "end_at": "--until",
    "run_at": "--at",
    "jitter_s": "--jitter",
    "timeout_s": "--timeout",
    "max_retries": "--retries",
    "idempotency_key": "--key",
    "schedule_id": "--schedule",
}


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

    from hyperscale.ui.text import harmless_json

    streams.say(harmless_json(json.dumps(data, indent=2, ensure_ascii=False)))


def when(text: str | None, now: datetime) -> str:
    """The local time, and how far away it is."""
    if not text:
        return "-"
    moment = datetime.fromisoformat(text)
    seconds = (moment - now).total_seconds()
    away = f"in {tables.age(seconds)}" if seconds >= 0 else f"{tables.age(-seconds)} ago"
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S} ({away})"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Name and value, one a line; those without a value are left out."""
    said = [(name, value) for name, value in rows if value]
    width = max(len(name) for name, _ in said)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in said)
