"""Updates judged already: gossip repeats itself, and a second judgement of the same words changes
nothing until a row is dropped (then this memory is dropped too).

Only their hashes are kept: a tenth of the memory, and nothing to read again to compare. Names are
hashed with a secret of the process, so nobody can choose two updates that collide; by chance less
than one in 2^48 does, and the next full exchange brings what was missed.
"""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.cluster.membership.messages import Update


class Seen:
    """Emptied when it is full."""

    __slots__ = ("_hashes", "_maximum")

    def __init__(self, maximum: int) -> None:
        self._hashes: set[int] = set()
        self._maximum = maximum

    def judge(self, updates: list[Update], judge: Callable[[Update], bool]) -> None:
        """Give each update that is new to `judge`, and remember it if that says so."""
        for update in updates:
            known = hash(update)
            if known not in self._hashes and judge(update):
                if len(self._hashes) >= self._maximum:
                    self._hashes.clear()
                self._hashes.add(known)

    def clear(self) -> None:
        self._hashes.clear()
