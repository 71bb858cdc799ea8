"""More time for a busy worker: each grant is half the last, and there are five.

With a base of 30 s: 15, 7.5, 3.75, 1.875 and 1 s. The fourth comes with a warning. After the fifth
the worker is exhausted when it asks again, or when the last grant has run out, whichever is first;
ten seconds of grace later it may be evicted.
"""

from __future__ import annotations

from hyperscale.cluster.jobs.events import Grant
from hyperscale.cluster.jobs.settings import JobSettings

WARN_AT_REMAINING = 1


class Extensions:
    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """The operation is done, or the worker has recovered."""
        self.count = 0
        self.total_s = 0.0
        self.until: float | None = None
        self._progress = 0.0
        self._refused_at: float | None = None
        self._warned = False

    @property
    def remaining(self) -> int:
        return self._settings.extensions_max - self.count

    def ask(self, now: float, progress: float, suspect: bool = False) -> Grant:
        if suspect:
            return self._deny(now, "suspect: the worker is taken for dead")
        if self.remaining <= 0:
            if self._refused_at is None:
                self._refused_at = now
            return self._deny(now, f"max_extensions_exceeded: all {self.count} are used")
        if self.count and progress <= self._progress:
            return self._deny(now, f"no_progress: {progress:.3f} is not above {self._progress:.3f}")
        seconds = max(
            self._settings.extension_min_s,
            self._settings.extension_base_s / 2 ** (self.count + 1),
        )
        self.count += 1
        self.total_s += seconds
        self._progress = progress
        self.until = max(now, self.until or now) + seconds
        warning = self.remaining <= WARN_AT_REMAINING and not self._warned
        self._warned = self._warned or warning
        return Grant(True, seconds, self.remaining, warning=warning)

    def _deny(self, now: float, denial: str) -> Grant:
        return Grant(
            False, remaining=self.remaining, denial=denial, grace_s=self.grace_remaining_s(now)
        )

    def exhausted_at(self) -> float | None:
        if self.remaining > 0:
            return None
        ends = [at for at in (self._refused_at, self.until) if at is not None]
        return min(ends, default=None)

    def evict_at(self) -> float | None:
        exhausted = self.exhausted_at()
        return None if exhausted is None else exhausted + self._settings.extension_grace_s

    def grace_remaining_s(self, now: float) -> float:
        end, exhausted = self.evict_at(), self.exhausted_at()
        if end is None or exhausted is None or now < exhausted:
            return 0.0
        return max(0.0, end - now)

    def excuses(self, now: float) -> bool:
        """Within granted time: not to be called stuck."""
        return self.until is not None and now < self.until
