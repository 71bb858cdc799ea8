"""The three standard descriptors, open before anything else is.

A closed one must not be handed to the next socket that is opened: what is printed there would
reach the target.
"""

from __future__ import annotations

import os
import sys


def secure() -> None:
    """Make the three standard descriptors and `sys.stdout`/`sys.stderr` usable."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives to the end
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives to the end
