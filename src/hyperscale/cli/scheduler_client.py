"""Common to `schedule`, `queue` and `scheduler`: which scheduler is asked, how it answers.

`client_of` lends its options to the commands, and is given them back by `ask`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

import typer

from hyperscale.cli import streams
from hyperscale.errors import BadInput

if TYPE_CHECKING:
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


def client_of(url: Url = "", token: Token = "", ca: Ca = "", plain_http: PlainHttp = False) -> Any:
    """A SchedulerClient; its type is not imported before it is needed, and a lender's signature is
    evaluated at once."""
    from hyperscale.scheduler.http.client import SchedulerClient

    return SchedulerClient(
        address_of(url),
        token or _said("TOKEN") or None,
        ca=ca or _said("CA"),
        plain_http=plain_http or _said("PLAIN_HTTP").lower() in ("1", "true", "yes", "on"),
    )


def address_of(url: str) -> str:
    from hyperscale.scheduler.http.client import DEFAULT_URL

    return url or _said("URL") or DEFAULT_URL


def is_here(url: str) -> bool:
    from hyperscale.scheduler.addresses import is_loopback

    return is_loopback(urlsplit(address_of(url)).hostname or "")


def _said(name: str) -> str:
    return os.environ.get(f"HYPERSCALE_SCHEDULER_{name}", "")


def called(function: Callable[..., T], given: Mapping[str, Any], **more: Any) -> T:
    """With those of a command's options that it lent."""
    names = inspect.signature(function).parameters
    return function(**{name: given[name] for name in names if name in given}, **more)


def ask(given: Mapping[str, Any], question: Callable[[SchedulerClient], T]) -> T:
    from hyperscale.scheduler.http.client import Refused

    client: SchedulerClient
    with called(client_of, given) as client:
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
