"""With which leader this worker is registered, and whom to ask when it is with none.

Any manager may be asked; one that does not lead names who does. A round asks everybody known
once, the likely leader first. Rounds follow each other for as long as it takes, which is also how
a worker without a leader keeps in touch with managers.

    SEEKING --a leader took us in--> REGISTERED --it is gone, or leads no more--> SEEKING
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from random import Random

from hyperscale.cluster.overload.backoff import Backoff
from hyperscale.nodes.protocol.parts import Registered
from hyperscale.runtime.host import Address

# Not more than 2 s: managers that hear nothing from us give our work away.
ROUND_BACKOFF = Backoff(base_delay_s=0.5, delay_max_s=2.0)
# Between rounds when load must end unless somebody answers: several in what a lease that runs out
# (3 s) leaves of the fence (6 s), for no longer than that.
HURRY_S = 0.5
HINT_PAUSE_S = 0.05
MANAGERS_MAX = 64


class RegistrationState(Enum):
    SEEKING = "seeking"
    REGISTERED = "registered"


class Registration:
    def __init__(self, now: float, dice: Random) -> None:
        self.standing = RegistrationState.SEEKING
        self.term = 0
        """The highest any manager has spoken of; it never falls."""
        self.leader: Address | None = None
        """The manager that has this worker in its table, while REGISTERED."""
        self.next_at = now
        """When somebody may be asked again, while SEEKING."""
        self._dice = dice
        self._managers: dict[Address, None] = {}
        self._likely: Address | None = None
        self._hinted: Address | None = None
        self._asked: set[Address] = set()
        self._under_way: set[Address] = set()
        self._rounds = 0

    @property
    def registered(self) -> bool:
        return self.standing is RegistrationState.REGISTERED

    @property
    def managers(self) -> list[Address]:
        return list(self._managers)

    def know(self, managers: Iterable[Address]) -> None:
        """All managers there seem to be; earlier ones are forgotten."""
        self._managers = dict.fromkeys(list(managers)[:MANAGERS_MAX])

    def whom(self, now: float) -> Address | None:
        """Whom to ask now; None: nobody before `next_at`."""
        if self.registered or now < self.next_at:
            return None
        order = [*([self._likely] if self._likely is not None else []), *self._managers]
        left = [each for each in order if each not in self._asked | self._under_way]
        if left:
            self._asked.add(left[0])
            self._under_way.add(left[0])
            return left[0]
        self._end_round(now)
        return None

    def answered(self, now: float, asked: Address, answer: Registered) -> bool:
        """True when this made us registered."""
        self._under_way.discard(asked)
        self.hear_term(now, answer.term, asked if answer.accepted else None)
        if self.registered:
            return False
        if answer.accepted and answer.term >= self.term:
            self.standing = RegistrationState.REGISTERED
            self.leader = self._likely = asked
            self._rounds = 0
            self._asked.clear()
            return True
        if answer.leader_address is not None:
            self._hint(now, Address(*answer.leader_address))
        elif self._likely == asked:
            self._likely = None
        return False

    def _hint(self, now: float, leader: Address) -> None:
        """News is followed almost at once; the same word again waits for the next round, or two
        managers that name a dead one would keep us running in circles."""
        if leader != self._hinted and leader not in self._under_way:
            self.next_at = min(self.next_at, now + HINT_PAUSE_S)
        self._likely = self._hinted = leader

    def failed(self, asked: Address) -> None:
        self._under_way.discard(asked)
        if self._likely == asked:
            self._likely = None

    def seek(self, now: float, likely: Address | None) -> None:
        self.standing = RegistrationState.SEEKING
        self.leader = None
        self._likely = likely
        self._hinted = None
        self._asked.clear()
        self.next_at = now

    def hurry(self, now: float) -> None:
        """Load depends on the next answers."""
        self.next_at = min(self.next_at, now + HURRY_S)

    def hear_term(self, now: float, term: int, speaker: Address | None) -> bool:
        """False when the speaker is from the past. A new term means a new leader to register
        with; `speaker` is who leads it, when that is known."""
        if term > self.term:
            self.term = term
            if self.registered:
                self.seek(now, speaker)
        return term >= self.term

    def _end_round(self, now: float) -> None:
        self._asked.clear()
        self.next_at = now + ROUND_BACKOFF.delay_s(self._rounds, self._dice)
        self._rounds += 1
