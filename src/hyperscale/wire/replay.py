"""Which datagrams of a sender were seen already.

Numbers may arrive out of order within a window; a number seen, or left behind by the window, is a
replay. A sender that starts again comes with a higher epoch and a fresh window; its old epoch is
over for good. What a datagram says of time is not believed, so a wrong clock silences nobody; our
own clock only tells how long a sender has been silent, for the memory of it is bounded too.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from hyperscale.cluster.identity import INCARNATION_MAX, JUMP_MAX

# Datagrams that may overtake each other: seconds of the busiest sender.
WINDOW = 1024
# A cluster of 1,000 four times over. Each remembered sender costs about 1 KB.
SENDERS_MAX = 4096
# A day: far longer than a member that died is remembered by membership (75 minutes), so a replay
# that is not recognised any more speaks of a node nobody knows, and is found silent when asked.
SILENT_S_MAX = 86_400.0
# The first epoch that is believed of a sender nobody knows yet.
EPOCH_MAX = INCARNATION_MAX


@dataclass(slots=True)
class Seen:
    """The numbers of one epoch: the highest, and a bit for each of those just below it."""

    epoch: int
    salt: bytes
    heard_at: float
    highest: int = -1
    bits: int = 0

    def is_new(self, number: int) -> bool:
        behind = self.highest - number
        return behind < 0 or (behind < WINDOW and not self.bits >> behind & 1)

    def mark(self, number: int) -> None:
        ahead = number - self.highest
        if ahead > 0:
            kept = self.bits << ahead if ahead < WINDOW else 0
            self.bits = (kept | 1) & ((1 << WINDOW) - 1)
            self.highest = number
        else:
            self.bits |= 1 << -ahead


class ReplayGuard:
    """Ask `is_new` before the price of decrypting, `mark` after the sender has proven itself."""

    def __init__(self, senders_max: int = SENDERS_MAX, silent_s_max: float = SILENT_S_MAX) -> None:
        self._senders_max = senders_max
        self._silent_s_max = silent_s_max
        # The one heard longest ago comes first.
        self._seen: OrderedDict[bytes, Seen] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def is_new(self, sender: bytes, epoch: int, salt: bytes, number: int) -> bool:
        seen = self._seen.get(sender)
        if seen is None or epoch > seen.epoch:
            return not self.leaps(sender, epoch)
        return epoch == seen.epoch and salt == seen.salt and seen.is_new(number)

    def leaps(self, sender: bytes, epoch: int) -> bool:
        """No sender starts that often: believed once, it would silence the real one for long."""
        seen = self._seen.get(sender)
        known = EPOCH_MAX if seen is None else seen.epoch + JUMP_MAX
        return epoch > known

    def vouched(self, sender: bytes, epoch: int) -> bool:
        """Its certificate says that it lives in this epoch: one far above it was somebody else's.
        True when that is forgotten."""
        seen = self._seen.get(sender)
        if seen is None or seen.epoch <= epoch + JUMP_MAX:
            return False
        del self._seen[sender]
        return True

    def mark(self, now: float, sender: bytes, epoch: int, salt: bytes, number: int) -> list[bytes]:
        """Remember it. Returns the senders that are forgotten instead: too many, or silent for
        too long."""
        seen = self._seen.get(sender)
        if seen is None or epoch > seen.epoch:
            seen = self._seen[sender] = Seen(epoch, salt, now)
        seen.mark(number)
        seen.heard_at = now
        self._seen.move_to_end(sender)
        return self._forget(now)

    def _forget(self, now: float) -> list[bytes]:
        gone: list[bytes] = []
        for sender, seen in self._seen.items():
            few = len(self._seen) - len(gone) <= self._senders_max
            if few and now - seen.heard_at <= self._silent_s_max:
                break
            gone.append(sender)
        for sender in gone:
            del self._seen[sender]
        return gone
