"""Whether a worker takes new parts: not while it leaves, and not while it is drained.

Leaving is for good: SIGTERM was heard. Being drained is an administrator's word, and can be taken
back. The worker itself remembers it and tells every leader, so it outlives any manager; a worker
that is started again takes parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.nodes.protocol.parts import DrainOrder


@dataclass(slots=True)
class Duty:
    leaving: bool = False
    drained_by: str = ""

    @property
    def off(self) -> str:
        """Why it takes nothing new; empty when it does."""
        if self.leaving:
            return "this worker is leaving"
        return f"this worker is drained by {self.drained_by}" if self.drained_by else ""

    def obey(self, order: DrainOrder) -> None:
        self.drained_by = "" if order.undo else order.by or "an administrator"
