"""Which datagrams of a sender were seen already.

Numbers may arrive out of order within a window; a number seen, or left behind by the window, is a
replay. A sender that starts again comes with a higher epoch and a fresh window; its old epoch is
over for good. No clock takes part, so a wrong one silences nobody.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

# Datagrams that may overtake each other: seconds of the busiest sender.
WINDOW = 1024
# A cluster of 1,000 four times over. Each remembered sender costs about 1 KB.
SENDERS_MAX = 4096


@dataclass(slots=True)
class Seen:
    """The numbers of one epoch: the highest, and a bit for each of those just below it."""

    epoch: int
    salt: bytes
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

    def __init__(self, senders_max: int = SENDERS_MAX) -> None:
        self._senders_max = senders_max
        self._seen: OrderedDict[bytes, Seen] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def is_new(self, sender: bytes, epoch: int, salt: bytes, number: int) -> bool:
        seen = self._seen.get(sender)
        if seen is None or epoch > seen.epoch:
            return True
        return epoch == seen.epoch and salt == seen.salt and seen.is_new(number)

    def mark(self, sender: bytes, epoch: int, salt: bytes, number: int) -> None:
        seen = self._seen.get(sender)
        if seen is None or epoch > seen.epoch:
            seen = self._seen[sender] = Seen(epoch, salt)
            if len(self._seen) > self._senders_max:
                self._seen.popitem(last=False)
        seen.mark(number)
        self._seen.move_to_end(sender)
