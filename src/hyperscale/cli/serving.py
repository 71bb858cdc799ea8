"""What the commands that start a node have in common: the options of `node`, a log, an end."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

from hyperscale.errors import ExitCode

if TYPE_CHECKING:
    from hyperscale.nodes.member.settings import NodeSettings

LIFELINE = "HYPERSCALE_LIFELINE"


def node_settings(given: Mapping[str, Any], role: str) -> NodeSettings:
    from hyperscale.config import find_file
    from hyperscale.nodes.member.settings import read_settings, read_table

    file = find_file(given.get("config"))
    table = read_table(file) if file is not None else {}
    return read_settings({**given, "role": role}, os.environ, table)


def tables_of(given: Mapping[str, Any], name: str) -> dict[str, object]:
    """Another table of the same config file."""
    import tomllib

    from hyperscale.config import find_file
    from hyperscale.errors import BadInput

    file = find_file(given.get("config"))
    if file is None:
        return {}
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get(name, {})
    except (OSError, ValueError) as error:
        raise BadInput(f"the config file {str(file)!r} cannot be read: {error}") from None
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
