"""What a person is told while no manager can answer: at once, and again when the reason changes.

A client waits for up to a minute, because elections and restarts take seconds; nobody should have
to look at a silent screen meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Longer than any answer of a cluster that is well, short enough to count as at once.
SAY_AFTER_S = 1.0

Say = Callable[[str], None]


class Waiting:
    """For one question."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._asked = ""
        self._reason = ""
        self._said = ""
        self._due = False

    def asks(self, address: str) -> None:
        """Nothing better is known than who is being asked, until somebody gives a reason."""
        self._asked = address

    def because(self, reason: str) -> None:
        self._reason = reason
        if self._due and reason != self._said:
            self._said = reason
            self._say(reason)

    def is_due(self) -> None:
        self._due = True
        self.because(self._reason or f"waiting for an answer of {self._asked}")


@contextmanager
def waiting(say: Say | None) -> Iterator[Waiting | None]:
    if say is None:
        yield None
        return
    word = Waiting(say)
    timer = asyncio.get_running_loop().call_later(SAY_AFTER_S, word.is_due)
    try:
        yield word
    finally:
        timer.cancel()
