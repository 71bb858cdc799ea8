"""The lease of a primary: promises of the others, counted from when it asked for them."""

from __future__ import annotations

from hyperscale.ledger.vsr.messages import Beat
from hyperscale.ledger.vsr.settings import VsrSettings

BEATS_MAX = 64  # that are remembered; an answer to an older one renews nothing


class Lease:
    def __init__(self, life: int, settings: VsrSettings) -> None:
        """`life` differs at every start, so that nobody answers a heartbeat of another life."""
        self._life = life
        self._settings = settings
        self._number = 0
        self._sent_at: dict[int, float] = {}
        self._promised_at: dict[str, float] = {}

    def beat(self, now: float) -> Beat:
        self._number += 1
        self._sent_at[self._number] = now
        self._sent_at.pop(self._number - BEATS_MAX, None)
        return Beat(self._life, self._number)

    def answered(self, member: str, beat: Beat) -> None:
        sent_at = self._sent_at.get(beat.number)
        if beat.life == self._life and sent_at is not None:
            self._promised_at[member] = max(sent_at, self._promised_at.get(member, sent_at))

    def forget(self) -> None:
        """Promises were made to the primary of a view; in the next one they mean nothing."""
        self._sent_at.clear()
        self._promised_at.clear()

    def held(self, now: float, others: list[str], needed: int) -> bool:
        """`needed`: a quorum less the primary itself."""
        if needed == 0:
            return True
        promised = sorted(
            (self._promised_at[one] for one in others if one in self._promised_at), reverse=True
        )
        return len(promised) >= needed and now < promised[needed - 1] + self._settings.lease_held_s
