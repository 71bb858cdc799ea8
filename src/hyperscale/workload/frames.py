"""Where the author's code raised: file, line and function, and the author's part of a traceback."""

from __future__ import annotations

import os
import sysconfig
import traceback
from pathlib import Path

import hyperscale

_OURS = f"{Path(hyperscale.__file__).parent}{os.sep}"
_INSTALLED = tuple(
    {
        f"{sysconfig.get_path(name)}{os.sep}"
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_ASKED = type(os.environ).__getitem__.__code__
TRACEBACK_MAX = 4_000  # characters


def where(error: BaseException) -> str:
    """`shop.py:31 in view`: the innermost line that is the author's, or nothing."""
    frames = [frame for frame in _frames(error) if not frame.filename.startswith(_INSTALLED)]
    return place(frames[-1]) if frames else ""


def told(error: BaseException) -> str:
    """In a sentence: `KeyError: 'price' (shop.py:31 in setup)`."""
    at = where(error)
    return f"{type(error).__name__}: {error}" + (f" ({at})" if at else "")


def variable_hint(error: BaseException) -> str:
    """What to do when the author's code asks for an environment variable that is not there."""
    if not isinstance(error, KeyError):
        return ""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return f"pass the variable to the test: -e {error.args[0]}" if codes[-1:] == [_ASKED] else ""


def line_of(function: object) -> str:
    """`shop.py:31 in view`: where a function begins."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    return f"{Path(code.co_filename).name}:{code.co_firstlineno} in {code.co_name}"


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
