"""What a schedule and a job run, as options: `work_of` lends them to both commands and reads them.

Values arrive as text, with one sentence for each that does not fit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from hyperscale.errors import BadInput

WORK = "What to run"
LIMITS = "How to run it"


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
Compare = Annotated[
    str, _work("--compare", "last-good", "a load test fails if it got worse since that run")
]
Tolerance = Annotated[str, _work("--tolerance", "SHARE", "smaller changes do not count (5%)")]
Priority = Annotated[str, _limit("--priority", "N", "0 first to 2000 last, or high, low ... (500)")]
Timeout = Annotated[str, _limit("--timeout", "SECONDS", "kill it after this")]
Retries = Annotated[str, _limit("--retries", "N", "after a failure (3)")]
Capability = Annotated[
    list[str] | None, _limit("--capability", "NAME", "workers must have it; repeatable")
]
Tag = Annotated[list[str] | None, _limit("--tag", "K=V", "label it; repeatable")]


def work_of(
    here: bool,
    loadtest: Loadtest = "",
    http: Http = "",
    python: Python = "",
    command: Command = "",
    kind: Kind = "",
    payload: Payload = None,
    arg: Arg = None,
    compare: Compare = "",
    tolerance: Tolerance = "",
    priority: Priority = "",
    timeout: Timeout = "",
    retries: Retries = "",
    capability: Capability = None,
    tag: Tag = None,
) -> dict[str, Any]:
    """The part of a request that says what to run. `here`: the scheduler is on this machine."""
    given = {"loadtest": loadtest, "http": http, "python": python, "command": command}
    named = [name for name, value in given.items() if value]
    if len(named) + bool(kind) != 1:
        raise BadInput(
            "one thing is run" if named or kind else "there is nothing to run",
            "give one of --loadtest, --http, --python, --command or --kind",
        )
    if arg and not loadtest:
        raise BadInput("--arg is for --loadtest")
    if compare not in ("", "last-good"):
        raise BadInput(f"--compare takes last-good, not {compare!r}")
    if (compare or tolerance) and not loadtest:
        raise BadInput("--compare and --tolerance are for --loadtest")
    values: dict[str, Any] = {}
    if loadtest:
        values["file"] = _path(loadtest, here)
        if arg:
            values["args"] = arg
        values |= {"compare": compare} if compare else {}
        values |= {"tolerance": tolerance} if tolerance else {}
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


def _path(file: str, here: bool) -> str:
    """A scheduler on this machine may have been started elsewhere; another machine has its own
    files."""
    if not here:
        return file
    if not os.path.isfile(file):
        raise BadInput(f"there is no test file {file}", "hyperscale new FILE writes one")
    return os.path.abspath(file)


def _priority(text: str) -> int:
    from hyperscale.scheduler.queue.spec import PRIORITIES

    named = PRIORITIES.get(text.lower())
    if named is None and not text.isdecimal():
        raise BadInput(
            f"--priority takes a number or a name, not {text!r}", f"names: {', '.join(PRIORITIES)}"
        )
    return int(text) if named is None else named


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
