"""An error as a person meets it: one sentence, and a hint of what to do about it."""

from __future__ import annotations

import sys
from typing import TextIO

from hyperscale.errors import HyperscaleError
from hyperscale.ui.output import Output, Paint
from hyperscale.workload.secrets import mask


def render_error(error: HyperscaleError, paint: Paint | None = None) -> str:
    paint = paint or Paint(False)
    lines = [f"{paint.bad('error:')} {_indented(mask(error.message), 7)}"]
    if error.hint:
        lines.append(f"{paint.faint('hint:')}  {_indented(mask(error.hint), 7)}")
    return "\n".join(lines) + "\n"


def print_error(error: HyperscaleError, stream: TextIO | None = None) -> None:
    """To stderr unless told otherwise. Never raises: there may be no stderr."""
    output = Output(sys.stderr if stream is None else stream)
    output.write(render_error(error, output.paint()))


def _indented(text: str, width: int) -> str:
    return text.strip().replace("\n", "\n" + " " * width)
