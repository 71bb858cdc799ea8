"""Time as jobs are charged for it: only while somebody leads, and this manager was there to see it.

Without a leader nobody hears that work is done and nobody can end it, so nothing may be held
against a job for that time. A manager that was suspended counts no more of the gap than it would
have taken to look.
"""

from __future__ import annotations

from typing import Final

# A manager looks once a second at least, and several are let pass for a busy one.
LOOK_S_MAX: Final = 3.0


class LedTime:
    def __init__(self) -> None:
        self._total_s = 0.0
        self._looked_at = 0.0
        self._led = False

    def look(self, now: float, led: bool | None = None) -> None:
        """Now, and from now on if told so, there is a leader or none."""
        self._total_s = self.at(now)
        self._looked_at = now
        if led is not None:
            self._led = led

    def at(self, now: float) -> float:
        """How much there has been of it so far."""
        if not self._led:
            return self._total_s
        return self._total_s + max(0.0, min(now - self._looked_at, LOOK_S_MAX))
