"""`hyperscale scheduler`: the coordinator with its API, page and worker; a worker alone; and what
whoever looks after them asks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hyperscale.cli import flags, streams, tables
from hyperscale.cli import scheduler_client as shared
from hyperscale.cli import scheduler_operations as operations
from hyperscale.cli.shared_options import options_of
from hyperscale.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from hyperscale.config.sections import Reading
    from hyperscale.scheduler.http.access import Access
    from hyperscale.scheduler.http.settings import ProcessSettings
    from hyperscale.scheduler.settings import SchedulerSettings

API = "Its API"
STATE = "Where it keeps its state"
WORKER = "Its worker"
WATCH = "What it tells"
ACTIONS = ("worker", *operations.ACTIONS)
LIBRARIES = ("fastapi", "prometheus_client", "pydantic", "redis", "uvicorn")


def _option(panel: str, *names: str, metavar: str = "", help: str = "") -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


@options_of(shared.which_scheduler)
def scheduler(
    ctx: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION", help="none: start it; worker; " + ", ".join(operations.ACTIONS)
        ),
    ] = "",
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="explain: JSON logs, - is stdin; drain: worker"),
    ] = None,
    host: Annotated[str, _option(API, "--host", metavar="HOST", help="listen here (127.0.0.1)")] = (
        ""
    ),
    port: Annotated[
        str, _option(API, "--port", metavar="N", help="and here (8090; a worker: nowhere); 0: any")
    ] = "",
    tokens: Annotated[
        str, _option(API, "--tokens", metavar="FILE", help="NAME ROLE TOKEN a line")
    ] = "",
    open: Annotated[
        bool, _option(API, "--open", help="no token: everybody on this machine may do everything")
    ] = False,
    tls_cert: Annotated[
        str, _option(API, "--tls-cert", metavar="FILE", help="PEM certificate: https")
    ] = "",
    tls_key: Annotated[str, _option(API, "--tls-key", metavar="FILE", help="and its key")] = "",
    plain_http: Annotated[
        bool, _option(API, "--plain-http", help="tokens may travel unencrypted over a network")
    ] = False,
    address: Annotated[
        str, _option(API, "--address", metavar="URL", help="what others are told to call it")
    ] = "",
    store: Annotated[
        str,
        _option(
            STATE, "--store", metavar="ADDRESS", help="sqlite:FILE, postgres://..., redis://..."
        ),
    ] = "",
    election: Annotated[
        str,
        _option(
            STATE, "--election", metavar="ADDRESS", help="local, postgres://, etcd://, redis://..."
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
    loadtest_dir: Annotated[
        str, _option(WORKER, "--loadtest-dir", metavar="DIR", help="of its load tests (here)")
    ] = "",
    http_allow: Annotated[
        list[str] | None,
        _option(
            WORKER,
            "--http-allow",
            metavar="HOST[:PORT]",
            help="or network, not public, that http jobs may call; repeatable",
        ),
    ] = None,
    command: Annotated[bool, _option(WORKER, "--command", help="jobs may start programs")] = False,
    otlp: Annotated[
        str, _option(WATCH, "--otlp", metavar="URL", help="send traces to this collector")
    ] = "",
    trace_share: Annotated[
        str,
        _option(WATCH, "--trace-share", metavar="0..1", help="of jobs (0.01); failures always"),
    ] = "",
    log: Annotated[
        str, _option(WATCH, "--log", metavar="FILE", help="stdout, stderr or a file (stderr)")
    ] = "stderr",
    log_level: Annotated[
        str, _option(WATCH, "--log-level", metavar="LEVEL", help="debug, info, warning (warning)")
    ] = "warning",
    reason: Annotated[
        str, _option(operations.PANEL, "--reason", metavar="TEXT", help="stop: why; others read it")
    ] = "",
    cancel_running: Annotated[
        bool, _option(operations.PANEL, "--cancel-running", help="stop: also what runs now")
    ] = False,
    job: Annotated[
        str,
        _option(operations.PANEL, "--job", metavar="ID", help="explain: one job or correlation id"),
    ] = "",
    config: flags.Config = None,
    show_settings: flags.ShowSettings = False,
    json: shared.Json = False,
    debug: flags.Debug = False,
    **_which: Any,
) -> int:
    """Run jobs by the clock, or look how that goes."""
    if action and action not in ACTIONS:
        raise BadInput(f"there is no action {action!r}", f"there are: {', '.join(ACTIONS)}")
    if files and action not in ("explain", "drain", "undrain"):
        raise BadInput(
            f"{action or 'scheduler'} takes no further words", "explain, drain and undrain do"
        )
    if action in operations.ACTIONS:
        asked = operations.Asked(ctx.params, json, files or [], reason, cancel_running, job)
        return operations.ACTIONS[action](asked)
    given = {
        **ctx.params,
        "worker": False if no_worker else None,
        "capabilities": capability,
    }
    reading, settings, process = _settings(given)
    token = reading.of("scheduler", "token").value
    if show_settings:
        return tables.show_settings(reading.rows())
    with _logging(log, log_level):
        if action == "worker":
            if no_worker:
                raise BadInput("a worker alone has no coordinator to be without")
            _work(settings, process, token)
        else:
            _serve(settings, process, token)
    return int(ExitCode.PASSED)


def _serve(settings: SchedulerSettings, process: ProcessSettings, token: str) -> None:
    from hyperscale.runtime.real import run
    from hyperscale.scheduler.http.process import serve

    def ready(url: str, access: Access) -> None:
        # Whatever else reads what a process says, such as a journal, is not who started it.
        token = f"#token={access.made}" if access.made and sys.stderr.isatty() else ""
        streams.note(f"scheduler at {url}  (page: {url}/{token}  API: {url}/api/v1/openapi.json)")
        streams.note(f"{access.told()}; {settings.told()}")

    run(serve(settings, process, token, ready))


def _work(settings: SchedulerSettings, process: ProcessSettings, token: str) -> None:
    from hyperscale.runtime.real import run
    from hyperscale.scheduler.http.process import work

    def ready(name: str, url: str) -> None:
        where = f" (health and metrics: {url})" if url else ""
        streams.note(f"worker {name} takes jobs{where}")

    run(work(settings, process, token, ready))


def _settings(
    given: Mapping[str, object],
) -> tuple[Reading, SchedulerSettings, ProcessSettings]:
    from hyperscale.cli.handover import taken_environment
    from hyperscale.config.sections import Reading, sources_of

    _check_libraries()
    from hyperscale.scheduler.http.settings import SECTIONS, process_settings
    from hyperscale.scheduler.settings import ENV_PREFIX, scheduler_settings

    environ = {**os.environ, **taken_environment(ENV_PREFIX)}
    reading = Reading(sources_of(given, environ), SECTIONS)
    return reading, scheduler_settings(reading), process_settings(reading)


def _check_libraries() -> None:
    """An installation that only runs tests has none of these."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise BadInput(
            f"the scheduler needs {', '.join(missing)}, not installed here",
            "pip install 'hyperscale-loadtest[scheduler]', or '.[scheduler]' in a checkout",
        )


@contextmanager
def _logging(destination: str, level: str) -> Iterator[None]:
    from hyperscale.runtime import logs

    configured = logs.configure(destination, level=cast("logs.Level", level))
    try:
        yield
    finally:
        configured.stop()
