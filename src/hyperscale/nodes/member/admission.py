"""Which requests a node admits: rate limits, load and slots behind the wire's `Admission`.

The load comes from how late this node's own loop runs, which is what every handler on it pays,
and from the machine's CPU, memory and queues where somebody reads them.
"""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.cluster.overload import (
    RETRY_AFTER_S,
    Admission,
    AdmissionResult,
    LoadLevel,
    OverloadDetector,
    Priority,
    RateLimiter,
    Resources,
)
from hyperscale.cluster.overload.ratelimit import Cause
from hyperscale.runtime.host import Host, Task
from hyperscale.wire.errors import Reason
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Kind
from hyperscale.wire.serving import Denial

# Ten samples fill the detector's fast window: a second.
SAMPLE_EVERY_S = 0.1
ASSESS_EVERY_SAMPLES = 5

# Until one of many subscriptions has likely ended.
WATCH_AGAIN_S = 1.0

_CLASSES = tuple(Priority)
_WHY = {
    Cause.SHED: "this node is overloaded",
    Cause.TOO_MANY_CLIENTS: "this node has too many clients",
    Cause.LIMIT: "rate limited: too many of these from one client",
    Cause.FAIR_SHARE: "rate limited: this node is stressed, and each client has a share of it",
    Cause.ABUSE: "rate limited: too many from one client",
}
_OURS = (Cause.SHED, Cause.TOO_MANY_CLIENTS)  # no fault of who asks


class NodeAdmission:
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
        self.slots = admission or Admission()
        self.limiter = limiter
        self.detector = detector or OverloadDetector()
        self.sample_every_s = SAMPLE_EVERY_S

    @property
    def load(self) -> LoadLevel:
        return self.detector.load

    def enter(self, kind: Kind, peer: Identity) -> Denial | None:
        """None: come in, and `leave` follows."""
        priority = _CLASSES[kind.priority]
        load = self.detector.load
        if not self.slots.try_acquire(priority, peer.node_id, load).admitted:
            return Denial("this node is overloaded", RETRY_AFTER_S[load])
        if _speaks_for_others(kind, peer):
            return None  # `counts_for` follows, when it is known for whom it asks
        denial = self.counts_for(kind, peer.node_id)
        if denial is not None:
            self.slots.release(priority, peer.node_id)
        return denial

    def counts_for(self, kind: Kind, client: str) -> Denial | None:
        """One more request of this client; None: it may."""
        if self.limiter is None:
            return None
        # Admission has shed what this load sheds, but for the few HIGH it keeps room for (state
        # sync must go on); the limiter must not shed those again.
        felt = min(self.detector.load, LoadLevel.STRESSED)
        priority = _CLASSES[kind.priority]
        refusal = self.limiter.check(self._host.clock.now(), client, kind.name, priority, felt)
        if refusal is None:
            return None
        code = Reason.OVERLOADED if refusal.cause in _OURS else Reason.RATE_LIMITED
        return Denial(_WHY[refusal.cause], refusal.retry_after_s, code)

    def leave(self, kind: Kind, peer: Identity) -> None:
        self.slots.release(_CLASSES[kind.priority], peer.node_id)

    def subscribe(self, kind: Kind, peer: Identity) -> Denial | None:
        verdict = self.slots.try_subscribe(peer.node_id, _speaks_for_others(kind, peer))
        if verdict.admitted:
            return None
        if verdict is AdmissionResult.SUBSCRIBED:
            return Denial("one client watches too much at once", WATCH_AGAIN_S, Reason.RATE_LIMITED)
        return Denial("too much is watched at once", WATCH_AGAIN_S)

    def unsubscribe(self, kind: Kind, peer: Identity) -> None:
        self.slots.unsubscribe(peer.node_id)

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


def _speaks_for_others(kind: Kind, peer: Identity) -> bool:
    """Between clients and managers stand managers and gates."""
    return kind.on_behalf and peer.role in ("gate", "manager")
