"""`hyperscale scheduler`: the coordinator with its API, page and worker; a worker alone; a look
at how they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, cast

import typer

from hyperscale.cli import flags, streams
from hyperscale.cli import scheduler_client as shared
from hyperscale.errors import BadInput, ExitCode, RunFailed

API = "Its API"
STATE = "Where it keeps its state"
WORKER = "Its worker"
ACTIONS = ("worker", "doctor", "verify")
PORT_DEFAULT = 8090


def _option(panel: str, *names: str, metavar: str = "", help: str = "") -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


def scheduler(
    action: Annotated[
        str,
        typer.Argument(metavar="ACTION", help="none: start it; worker, doctor or verify (audit)"),
    ] = "",
    host: Annotated[str, _option(API, "--host", metavar="HOST", help="listen here (127.0.0.1)")] = (
        ""
    ),
    port: Annotated[str, _option(API, "--port", metavar="N", help="and here (8090); 0: any")] = "",
    tokens: Annotated[
        str, _option(API, "--tokens", metavar="FILE", help="NAME ROLE TOKEN a line")
    ] = "",
    address: Annotated[
        str, _option(API, "--address", metavar="URL", help="what others are told to call it")
    ] = "",
    store: Annotated[
        str,
        _option(STATE, "--store", metavar="ADDRESS", help="sqlite:FILE, redis://HOST:PORT/DB"),
    ] = "",
    election: Annotated[
        str,
        _option(
            STATE, "--election", metavar="ADDRESS", help="local, etcd://HOST:PORT, redis://HOST"
        ),
    ] = "",
    node: Annotated[
        str, _option(STATE, "--node", metavar="NAME", help="of this process (host and chance)")
    ] = "",
    no_worker: Annotated[bool, _option(WORKER, "--no-worker", help="coordinate only")] = False,
    slots: Annotated[str, _option(WORKER, "--slots", metavar="N", help="jobs at once (4)")] = "",
    capability: Annotated[
        list[str] | None,
        _option(WORKER, "--capability", metavar="NAME", help="offer it; repeatable"),
    ] = None,
    python_allow: Annotated[
        list[str] | None,
        _option(WORKER, "--python-allow", metavar="MOD:FUNC", help="jobs may call; repeatable"),
    ] = None,
    command: Annotated[bool, _option(WORKER, "--command", help="jobs may start programs")] = False,
    log: Annotated[
        str, typer.Option("--log", metavar="FILE", help="stdout, stderr or a file (stderr)")
    ] = "stderr",
    log_level: Annotated[
        str, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning (warning)")
    ] = "warning",
    config: flags.Config = None,
    url: shared.Url = "",
    token: shared.Token = "",
    json: shared.Json = False,
    debug: flags.Debug = False,
) -> int:
    """Run jobs by the clock, or look how that goes."""
    if action and action not in ACTIONS:
        raise BadInput(f"there is no action {action!r}", f"there are: {', '.join(ACTIONS)}")
    if action == "doctor":
        return _doctor(url, token, json)
    if action == "verify":
        return _verify(url, token, json)
    given: dict[str, object] = {
        "store": store or None,
        "election": election or None,
        "node": node or None,
        "address": address or None,
        "worker": False if no_worker else None,
        "slots": slots or None,
        "capabilities": capability or None,
        "python_allow": python_allow or None,
        "command": command or None,
    }
    if action == "worker":
        if no_worker or host or port or tokens:
            raise BadInput("a worker alone has no API and no coordinator")
        return _work(given, config, log, log_level)
    return _serve(given, config, host, port, tokens, log, log_level)


def _serve(
    given: Mapping[str, object],
    config: str | None,
    host: str,
    port: str,
    tokens: str,
    log: str,
    log_level: str,
) -> int:
    from hyperscale.runtime.real import run
    from hyperscale.scheduler.api.access import access_for
    from hyperscale.scheduler.api.process import serve
    from hyperscale.scheduler.api.serving import bind

    settings, listening = _settings(given, config)
    where = host or str(listening.get("host", "127.0.0.1"))
    number = _port(port or str(listening.get("port", PORT_DEFAULT)))
    access = access_for(
        where,
        tokens or str(listening.get("tokens", "")),
        os.environ.get("HYPERSCALE_SCHEDULER_TOKEN", ""),
    )
    listener = bind(where, number)
    with listener, _logging(log, log_level):
        run(serve(settings, listener, access, _ready))
    return int(ExitCode.PASSED)


def _work(given: Mapping[str, object], config: str | None, log: str, log_level: str) -> int:
    from hyperscale.runtime.real import run
    from hyperscale.scheduler.api.process import work

    settings, _ = _settings(given, config)
    with _logging(log, log_level):
        run(work(settings, lambda name: streams.note(f"worker {name} takes jobs")))
    return int(ExitCode.PASSED)


def _ready(url: str) -> None:
    streams.note(f"scheduler at {url}  (page: {url}/  API: {url}/api/v1/openapi.json)")


def _settings(given: Mapping[str, object], config: str | None) -> tuple[Any, dict[str, object]]:
    """The scheduler's own settings, and where its API listens: host, port and tokens of the table
    are the command's."""
    from hyperscale.cli.serving import tables_of
    from hyperscale.scheduler.settings import settings_from

    table = tables_of({"config": config}, "scheduler")
    listening: dict[str, object] = {
        name: table.pop(name) for name in ("host", "port", "tokens") if name in table
    }
    return settings_from(given, os.environ, table), listening


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise BadInput(f"--port takes a number from 0 to 65535, not {text!r}")
    return int(text)


@contextmanager
def _logging(destination: str, level: str) -> Iterator[None]:
    from hyperscale.runtime import logs

    configured = logs.configure(destination, level=cast("logs.Level", level))
    try:
        yield
    finally:
        configured.stop()


def _doctor(url: str, token: str, json: bool) -> int:
    answer = shared.ask(url, token, lambda client: client.doctor())
    findings = answer["findings"]
    if json:
        shared.show_json(answer)
    elif not findings:
        streams.say("nothing is stuck, drifting, starving or skewed")
    else:
        blocks = [
            f"{one['severity']}: {one['name']}: {one['sentence']}\n  {one['advice']}"
            for one in findings
        ]
        streams.say("\n".join(blocks))
    ill = any(one["severity"] == "critical" for one in findings)
    return int(ExitCode.FAILED if ill else ExitCode.PASSED)


def _verify(url: str, token: str, json: bool) -> int:
    answer = shared.ask(url, token, lambda client: client.verify_audit())
    if json:
        shared.show_json(answer)
    elif answer["good"]:
        streams.say(f"good: {answer['rows']} rows of the audit log follow from each other")
    if not answer["good"]:
        raise RunFailed(
            f"the audit log is broken at row {answer['broken_at']}",
            "that row or one before it was changed; compare with a backup",
        )
    return int(ExitCode.PASSED)
