"""Who should lead, as far as there is a choice: health, readiness, and flap damping.

Health and readiness do not affect safety: they lengthen the delay before a campaign and choose the
successor of a leader that leaves. Being barred is no preference: see `states`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from hyperscale.cluster.election.settings import ElectionSettings


@dataclass(frozen=True, slots=True)
class Eligibility:
    lhm: float = 0.0
    """Local health score of this node, 0 (well) to 8."""
    barred: bool = False
    """It does not know yet that others count over its list of voters, or knows that most do not:
    it neither votes nor follows nor leads."""
    syncing: bool = False
    """Has not caught up with its peers: leads only if nobody else will."""
    other_term: int = 0
    """The highest term heard of voters that have another list: our next one is above it, so that
    no term has two leaders."""

    def willing(self, settings: ElectionSettings) -> bool:
        return not self.syncing and self.lhm <= settings.lhm_leader_max


def preference_s(eligibility: Eligibility, settings: ElectionSettings) -> float:
    """Delay added to every campaign: those of good health go first."""
    return eligibility.lhm * settings.lhm_step_s


def reluctance_s(eligibility: Eligibility, settings: ElectionSettings) -> float:
    """How long an unwilling voter waits for a better one to lead. It grows with the score, so
    when all are overburdened the healthiest goes first."""
    if eligibility.willing(settings):
        return 0.0
    return settings.reluctance_s + eligibility.lhm * settings.reluctance_step_s


def successor(
    peers: Mapping[str, Eligibility],
    settings: ElectionSettings,
    healthier_than: float | None = None,
) -> str | None:
    """The willing voter with the lowest score. A leader in distress also accepts an unwilling one,
    if strictly healthier: when all suffer, the lowest score wins."""

    def able(eligibility: Eligibility) -> bool:
        if eligibility.willing(settings):
            return healthier_than is None or eligibility.lhm < healthier_than
        return healthier_than is not None and eligibility.lhm < healthier_than

    names = [name for name, eligibility in peers.items() if able(eligibility)]
    return min(names, key=lambda n: (peers[n].lhm, n), default=None)


class FlapDamping:
    """Notices leadership changing hands too often. Holds back voluntary changes only: a cluster
    whose leader crashed elects another whatever happened before."""

    def __init__(self, settings: ElectionSettings) -> None:
        self._settings = settings
        self._changes: deque[float] = deque(maxlen=settings.flap_changes)
        self._cooled_at = 0.0

    def note_change(self, now: float) -> None:
        settings = self._settings
        self._changes.append(now)
        full = len(self._changes) == settings.flap_changes
        if full and now - self._changes[0] <= settings.flap_window_s:
            self._cooled_at = now + settings.flap_cooldown_s

    def cooling(self, now: float) -> bool:
        return bool(self._changes) and now < self._cooled_at
