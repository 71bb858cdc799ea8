"""Who is let in at a node: rate limits, load and slots behind the wire's `Admission`.

The load comes from how late this node's own loop runs, which is what every handler on it pays,
and from the machine's CPU, memory and queues where somebody reads them.
"""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.cluster.calm import (
    RETRY_AFTER_S,
    Admission,
    Load,
    OverloadDetector,
    Priority,
    RateLimiter,
    Resources,
)
from hyperscale.runtime.host import Host, Task
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Kind

# Ten samples fill the detector's fast window: a second.
SAMPLE_EVERY_S = 0.1
ASSESS_EVERY_SAMPLES = 5

_CLASSES = tuple(Priority)


class Doorkeeper:
    """One per node and transport. `watch` starts to follow the load; without it, only slots and
    rate limits count."""

    def __init__(
        self,
        host: Host,
        admission: Admission | None = None,
        limiter: RateLimiter | None = None,
        detector: OverloadDetector | None = None,
    ) -> None:
        self._host = host
        self.admission = admission or Admission()
        self.limiter = limiter
        self.detector = detector or OverloadDetector()
        self.sample_every_s = SAMPLE_EVERY_S

    @property
    def load(self) -> Load:
        return self.detector.load

    def enter(self, kind: Kind, peer: Identity) -> float | None:
        """None: come in, and `leave` follows. Otherwise seconds to wait."""
        priority = _CLASSES[kind.priority]
        load = self.detector.load
        if not self.admission.try_acquire(priority, peer.node_id, load).admitted:
            return RETRY_AFTER_S[load]
        if self.limiter is None:
            return None
        now = self._host.clock.now()
        # Admission has shed what this load sheds, but for the few HIGH it keeps room for (state
        # sync must go on); the limiter must not shed those again.
        felt = min(load, Load.STRESSED)
        refusal = self.limiter.check(now, peer.node_id, kind.name, priority, felt)
        if refusal is None:
            return None
        self.admission.release(priority, peer.node_id)
        return refusal.retry_after_s

    def leave(self, kind: Kind, peer: Identity) -> None:
        self.admission.release(_CLASSES[kind.priority], peer.node_id)

    def watch(self, resources: Callable[[], Resources] = Resources) -> Task:
        return self._host.tasks.spawn("watch the load", self._watch(resources))

    async def _watch(self, resources: Callable[[], Resources]) -> None:
        clock, every_s = self._host.clock, self.sample_every_s
        while True:
            for _ in range(ASSESS_EVERY_SAMPLES):
                asleep_at = clock.now()
                await clock.sleep(every_s)
                now = clock.now()
                self.detector.record(now, max(0.0, now - asleep_at - every_s))
            self.detector.assess(clock.now(), resources())
            if self.limiter is not None:
                self.limiter.sweep(clock.now())
