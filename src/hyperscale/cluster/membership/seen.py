"""Updates judged already: gossip repeats itself, and a second judgement of the same words changes
nothing until a row is dropped (then this memory is dropped too)."""

from __future__ import annotations

from hyperscale.cluster.membership.messages import Update


class Seen(set[Update]):
    """A set that is emptied when it is full."""

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self._maximum = maximum

    def add(self, update: Update) -> None:
        if len(self) >= self._maximum:
            self.clear()
        super().add(update)
