"""What the commands that start a node have in common: settings, a log, an end."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hyperscale.errors import ExitCode

if TYPE_CHECKING:
    from hyperscale.config.sections import Reading, Section
    from hyperscale.nodes.member.settings import NodeSettings

LIFELINE = "HYPERSCALE_LIFELINE"

Settings = TypeVar("Settings")


def read_or_show(
    given: Mapping[str, Any],
    sections: Sequence[Section],
    check: Callable[[Reading], Settings],
) -> Settings | None:
    """The settings of a node. With `--show-settings` they are printed, and there is no more to do;
    what is wrong with them is said in either case."""
    from hyperscale.cli.tables import show_settings
    from hyperscale.config.sections import Reading, sources_of

    reading = Reading(sources_of(given, os.environ), sections)
    if not given.get("show_settings"):
        return check(reading)
    show_settings(reading.rows())
    check(reading)
    return None


def keep_serving(settings: NodeSettings, serving: Coroutine[Any, Any, None]) -> int:
    from hyperscale.runtime import logs
    from hyperscale.runtime.real import run

    hold_lifeline()
    log_output = logs.configure(settings.log, level=cast("logs.Level", settings.log_level))
    try:
        run(serving)
    finally:
        log_output.stop()
    return int(ExitCode.PASSED)


def hold_lifeline() -> None:
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
