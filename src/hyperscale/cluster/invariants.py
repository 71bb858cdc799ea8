"""Assertions that stay: what a core must never see false, also under `python -O`.

A broken invariant is a bug here, never bad input; whoever catches it ends what it was doing.
"""

from __future__ import annotations


class InvariantBroken(AssertionError):
    """The program is wrong; going on could harm others."""


def invariant(holds: bool, what: str) -> None:
    if not holds:
        raise InvariantBroken(what)
