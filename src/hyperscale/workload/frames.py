"""Where the author's code raised: file, line and function, and the author's part of a traceback."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

import hyperscale

_OURS = str(Path(hyperscale.__file__).parent)
_INSTALLED = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
TRACEBACK_MAX = 4_000  # characters


def where(error: BaseException) -> str:
    """`shop.py:31 in view`: the innermost line that is the author's, or nothing."""
    frames = [frame for frame in _frames(error) if not frame.filename.startswith(_INSTALLED)]
    return place(frames[-1]) if frames else ""


def place(frame: traceback.FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"


def author_traceback(error: BaseException) -> str:
    """The traceback without the frames of this package; the last ones when it is very long."""
    told = [*traceback.format_list(_frames(error)), *traceback.format_exception_only(error)]
    text = "Traceback (most recent call last):\n" + "".join(told)
    return text if len(text) <= TRACEBACK_MAX else "...\n" + text[-TRACEBACK_MAX:]


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    if isinstance(error, BaseExceptionGroup):
        # The group tells where tasks were awaited, the first error in it what happened.
        return _frames(error.exceptions[0])
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if not frame.filename.startswith((_OURS, "<frozen"))]
