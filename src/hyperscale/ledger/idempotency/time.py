"""The ledger's own time: seconds it has been running, over all its lives.

How long an answer is kept is a duration, so no date decides it: a date may jump, above all at boot.
A process counts on from the last time found in the log with its monotonic clock. Time stands still
while nobody runs, which keeps answers longer, never shorter.
"""

from __future__ import annotations

from hyperscale.runtime.host import Clock


class LedgerTime:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.now()
        self._before_ms = 0

    def now_ms(self) -> int:
        return self._before_ms + int((self._clock.now() - self._started) * 1000)

    def resume(self, at_ms: int) -> None:
        """A record of an earlier life was read: that much time had passed."""
        if at_ms > self.now_ms():
            self._before_ms = at_ms
            self._started = self._clock.now()
