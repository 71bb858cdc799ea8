"""What a node tells its operator of what goes on around it, without saying the same for ever.

Who besieges a node must not fill its log as well, and a node that asks again and again for the same
thing is refused with the same words each time; an operator wants to read of it once in a while.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from hyperscale.cluster.membership import Change, Changed, SeedSilent
from hyperscale.cluster.overload import LoadLevel
from hyperscale.runtime.host import Address, Clock
from hyperscale.wire.errors import Refused

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

# Further ones are not remembered, and so not said.
REFUSALS_MAX = 1_000
TURNED_AWAY_EVERY_S = 10.0
# Forged datagrams may come by the thousand.
FORGED_EVERY_S = 60.0

_LOUD = (Change.SUSPECTED, Change.DIED, Change.UNCONFIRMED, Change.CONFLICT)


class OperatorLog:
    def __init__(self, log: FilteringBoundLogger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._refusals: set[tuple[Address, str]] = set()
        self._load = LoadLevel.HEALTHY
        self._forged, self._forged_at = 0, -math.inf
        self._turned_away: Counter[str] = Counter()
        self._turned_away_at: dict[str, float] = {}
        self._news_dropped = 0

    def refused(self, address: Address, error: Exception) -> None:
        """Why this node is not let in, once for each address and reason, in the other's words."""
        reason = str(error) or type(error).__name__
        if (address, reason) in self._refusals or len(self._refusals) >= REFUSALS_MAX:
            return
        self._refusals.add((address, reason))
        if isinstance(error, Refused) and error.retry_after_s is None:
            self._log.error("refused", by=str(address), reason=error.reason, code=error.code)
        else:
            self._log.info("not reached", address=str(address), reason=reason)

    def member_changed(self, event: Changed) -> None:
        say = self._log.warning if event.change in _LOUD else self._log.info
        say(
            f"member {event.change.value}",
            member=event.node.node_id,
            state=event.state.name.lower(),
            incarnation=event.incarnation,
            via=event.via.value,
            correlation_id=f"{event.node.node_id}@{event.incarnation}",
        )

    def seed_silent(self, event: SeedSilent) -> None:
        self._log.warning(
            "seed silent", address=str(Address(*event.address)), silent_s=round(event.silent_s)
        )

    def load(self, load: LoadLevel) -> None:
        if load is not self._load:
            say = self._log.warning if load > self._load else self._log.info
            say("load changed", load=load.name.lower(), before=self._load.name.lower())
            self._load = load

    def news_dropped(self, total: int) -> None:
        if total > self._news_dropped:
            dropped, self._news_dropped = total - self._news_dropped, total
            self._log.warning("no room for all news of members", dropped=dropped)

    def forged(self, total: int) -> None:
        """Somebody with the secret speaks of terms or lives that nobody has reached, or seals
        what only managers may."""
        now = self._clock.now()
        if total > self._forged and now >= self._forged_at + FORGED_EVERY_S:
            fresh, self._forged, self._forged_at = total - self._forged, total, now
            self._log.warning("forged datagrams refused", count=fresh)

    def turned_away(self, totals: Counter[str]) -> None:
        """Of each reason the first at once, and then how many there were in a while."""
        now = self._clock.now()
        for reason, count in sorted((totals - self._turned_away).items()):
            if now >= self._turned_away_at.get(reason, -math.inf) + TURNED_AWAY_EVERY_S:
                self._log.warning("turned away", reason=reason, count=count)
                self._turned_away_at[reason] = now
                self._turned_away[reason] = totals[reason]
