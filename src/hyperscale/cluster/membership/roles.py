"""How patient we are with a peer, by its role.

Gates and managers are few and matter, so an unconfirmed one is pinged on purpose before it is
dropped. Workers are many and run hot by design: they are never pinged on purpose, only waited
for. An unknown role is treated as a manager.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RoleStrategy:
    passive_s: float  # how long a gossiped peer may stay unheard before we act
    attempts: int  # pings on purpose after that; 0: none, it is simply dropped
    latency_aware: bool  # whether timeouts follow its network distance
    load_max: float  # by how much our own bad health may stretch its timeouts

    @property
    def probed(self) -> bool:
        return self.attempts > 0

    def patience_s(self, load: float) -> float:
        """How long we only wait, stretched by our own bad health."""
        return self.passive_s * self.stretch(load)

    def stretch(self, load: float) -> float:
        return min(self.load_max, max(1.0, load))


_MANAGER: Final = RoleStrategy(passive_s=90.0, attempts=3, latency_aware=True, load_max=5.0)
STRATEGIES: Final[dict[str, RoleStrategy]] = {
    "gate": RoleStrategy(passive_s=120.0, attempts=5, latency_aware=True, load_max=3.0),
    "manager": _MANAGER,
    "worker": RoleStrategy(passive_s=180.0, attempts=0, latency_aware=False, load_max=10.0),
}

ROUND_TRIPS: Final = 4.0  # ask, answer lost, ask again, answer
TIMEOUT_CAP_S: Final = 30.0


def strategy(role: str) -> RoleStrategy:
    return STRATEGIES.get(role, _MANAGER)


def may_exchange(role: str, other: str) -> bool:
    """Workers do not call each other: they compare views with managers."""
    return not (role == other == "worker")


def adaptive_timeout_s(role: str, base_s: float, rtt_upper_s: float, load: float) -> float:
    """(base + round trips) x load, never above the cap: distance is worth round trips, not the
    tenfold stretch that would hide a dead datacenter for minutes."""
    assert base_s > 0.0
    plan = strategy(role)
    distance_s = ROUND_TRIPS * rtt_upper_s if plan.latency_aware else 0.0
    return min(max(TIMEOUT_CAP_S, base_s), (base_s + distance_s) * plan.stretch(load))
