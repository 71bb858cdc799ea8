"""What the commands that start a node have in common: settings, a log, an end."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hyperscale.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from hyperscale.nodes.member.settings import NodeSettings
    from hyperscale.nodes.member.sources import Reading, Section

LIFELINE = "HYPERSCALE_LIFELINE"

Settings = TypeVar("Settings")


def read_or_show(
    given: Mapping[str, Any],
    sections: Sequence[Section],
    check: Callable[[Reading], Settings],
) -> Settings | None:
    """The settings of a node. With `--show-settings` they are printed, and there is no more to do;
    what is wrong with them is said in either case."""
    from hyperscale.config import CONFIG_FILE, find_file
    from hyperscale.nodes.member.sources import Reading, Sources

    file = find_file(given.get("config"))
    document = {} if file is None else document_of(file)
    sources = Sources(given, os.environ, document, CONFIG_FILE if file is None else str(file))
    reading = Reading(sources, sections)
    if not given.get("show_settings"):
        return check(reading)
    from hyperscale.cli import streams
    from hyperscale.cli.tables import table

    for line in table(("SETTING", "VALUE", "FROM"), reading.rows()):
        streams.say(line)
    check(reading)
    return None


def document_of(file: Path) -> dict[str, Any]:
    import tomllib

    from hyperscale.errors import BadInput

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"the config file {str(file)!r} cannot be read: {error}") from None


def tables_of(given: Mapping[str, Any], name: str) -> dict[str, object]:
    """One table of the config file."""
    from hyperscale.config import find_file
    from hyperscale.errors import BadInput

    file = find_file(given.get("config"))
    table = {} if file is None else document_of(file).get(name, {})
    if not isinstance(table, dict):
        raise BadInput(f"{file}: {name!r} is a table: write [{name}]")
    return table


def keep_serving(settings: NodeSettings, serving: Coroutine[Any, Any, None]) -> int:
    from hyperscale.runtime import logs
    from hyperscale.runtime.real import run

    _hold_lifeline()
    log_output = logs.configure(settings.log, level=cast("logs.Level", settings.log_level))
    try:
        run(serving)
    finally:
        log_output.stop()
    return int(ExitCode.PASSED)


def _hold_lifeline() -> None:
    """End with the program that started us, however it ends: it holds the other end of a pipe.

    The node gets a signal first and a moment to leave, then it is ended."""
    descriptor = os.environ.pop(LIFELINE, "")
    if not descriptor:
        return
    import signal
    import threading
    import time

    def watch() -> None:
        os.read(int(descriptor), 1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(2.0)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
