"""Which view a run gets: `full` (drawn), `ci` (a line now and then) or `none` (nothing).

What the user asked for holds, except that `full` needs a terminal that can be drawn on. Asked
for nothing, a terminal gets `full` unless the environment says this is a CI job.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Literal, TextIO, cast, get_args

from hyperscale.errors import BadInput
from hyperscale.ui.live.source import Source, View
from hyperscale.ui.output import Output

Mode = Literal["full", "ci", "none"]
MODES: tuple[str, ...] = get_args(Mode)

_NO = frozenset({"", "0", "false", "no", "off"})


def choose_mode(
    requested: str | None, stream: TextIO | None, environ: Mapping[str, str] | None = None
) -> Mode:
    environ = os.environ if environ is None else environ
    if requested is not None and requested not in MODES:
        raise BadInput(f"There is no view named {requested!r}.", f"Use one of {', '.join(MODES)}.")
    if requested in ("ci", "none"):
        return cast(Mode, requested)
    if not Output(stream, environ).is_terminal or not _can_be_drawn_on(environ):
        return "ci"
    if requested is None and environ.get("CI", "").lower() not in _NO:
        return "ci"
    return "full"


def _can_be_drawn_on(environ: Mapping[str, str]) -> bool:
    return environ.get("TERM", "") not in ("", "dumb") and sys.platform != "win32"


def open_view(
    requested: str | None,
    stream: TextIO | None = None,
    environ: Mapping[str, str] | None = None,
    page: str = "",
) -> View:
    """The view for this stream (stderr unless told otherwise: stdout belongs to the summary);
    `page` is where the run is shown besides."""
    stream = sys.stderr if stream is None else stream
    environ = os.environ if environ is None else environ
    mode = choose_mode(requested, stream, environ)
    if mode == "none" or stream is None:
        return NoView()
    if mode == "ci":
        from hyperscale.ui.ci import CiView

        return CiView(stream, environ=environ)
    from hyperscale.ui.live.view import LiveView

    return LiveView(stream, environ=environ, page=page)


class NoView:
    """Shows nothing."""

    async def run(self, source: Source) -> None:
        pass

    def over(self) -> None:
        pass
