"""How long the stages of a record take on the leader that writes it.

`sync` is this node's own disk, by batch: writing and syncing. `quorum` is from the proposal until
a majority has it on disk. `apply` is what this node does with a record that is held. `append` is
the whole, as its caller waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperscale.runtime.latency import Latency


@dataclass(slots=True)
class Stages:
    sync: Latency
    quorum: Latency = field(default_factory=Latency)
    apply: Latency = field(default_factory=Latency)
    append: Latency = field(default_factory=Latency)
    _proposed: dict[int, float] = field(default_factory=dict)

    def proposed(self, index: int, now: float) -> None:
        self._proposed[index] = now

    def held(self, index: int, now: float) -> None:
        began = self._proposed.pop(index, None)
        if began is not None:
            self.quorum.add(now - began)

    def deposed(self) -> None:
        """What is under way is not ours to see through any more."""
        self._proposed.clear()
