"""Which senders have shown that they live, and which of their datagrams were seen already.

A sender is known once it has answered a question that only we could have asked just now. What it
numbered before that answer is over: it may have been recorded before we started. Later numbers may
arrive out of order within a window; a number seen, or left behind by the window, is a replay. What
a datagram says of time is not believed, so a wrong clock silences nobody; our own clock only tells
how long a sender has been silent and how old a question is, for the memory of both is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# Datagrams that may overtake each other: seconds of the busiest sender.
WINDOW = 1024
# A cluster of 1,000 four times over. Each remembered sender costs about 1 KB.
SENDERS_MAX = 4096
# A day: far longer than a member that died is remembered by membership (75 minutes). A sender that
# comes back later is asked again.
SILENT_S_MAX = 86_400.0
# Many times the longest way there and back; until then every datagram repeats the same question.
QUESTION_S = 5.0
QUESTION_BYTES = 8

_ALL = (1 << WINDOW) - 1


@dataclass(slots=True)
class Window:
    """The highest number, and a bit for each of those just below it."""

    highest: int = -1
    bits: int = 0

    def is_new(self, number: int) -> bool:
        behind = self.highest - number
        return behind < 0 or (behind < WINDOW and not self.bits >> behind & 1)

    def mark(self, number: int) -> None:
        ahead = number - self.highest
        if ahead > 0:
            kept = self.bits << ahead if ahead < WINDOW else 0
            self.bits = (kept | 1) & _ALL
            self.highest = number
        else:
            self.bits |= 1 << -ahead


@dataclass(slots=True)
class Sender:
    """One start of a sender that has proven itself; `key` opens what it seals."""

    start: bytes
    key: AESGCM
    heard_at: float
    window: Window = field(default_factory=Window)


class Senders:
    """Strangers leave nothing here: both tables grow only by what was sealed under the secret."""

    def __init__(
        self, entropy: Callable[[int], bytes], clock: Callable[[], float], senders_max: int
    ) -> None:
        self._entropy = entropy
        self._clock = clock
        self._senders_max = senders_max
        # In both, the one heard or asked longest ago comes first.
        self._known: OrderedDict[bytes, Sender] = OrderedDict()
        self._asked: OrderedDict[bytes, tuple[bytes, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def known(self, sender: bytes, start: bytes) -> Sender | None:
        """None: this start of it has still to answer."""
        one = self._known.get(sender)
        return one if one is not None and one.start == start else None

    def heard(self, sender: bytes, one: Sender, number: int) -> None:
        one.window.mark(number)
        one.heard_at = self._clock()
        self._known.move_to_end(sender)
        self._forget(one.heard_at)

    def question(self, sender: bytes) -> bytes:
        """The same for a while, whatever start of the sender it is for, so that replays of an old
        start cannot keep a new one from answering in time."""
        now = self._clock()
        asked = self._asked.get(sender)
        if asked is None or now > asked[1] + QUESTION_S:
            asked = self._asked[sender] = (self._entropy(QUESTION_BYTES), now)
            self._asked.move_to_end(sender)
            if len(self._asked) > self._senders_max:
                self._asked.popitem(last=False)
        return asked[0]

    def answered(
        self, sender: bytes, start: bytes, key: AESGCM, number: int, answer: bytes
    ) -> bool:
        """Whether the question is answered: once, and in time. The sender is known from then on,
        by the numbers above this one."""
        now = self._clock()
        asked = self._asked.get(sender)
        if asked is None or answer != asked[0] or now > asked[1] + QUESTION_S:
            return False
        del self._asked[sender]
        self._known[sender] = Sender(start, key, now, Window(number, _ALL))
        self._known.move_to_end(sender)
        self._forget(now)
        return True

    def _forget(self, now: float) -> None:
        while self._known:
            sender, one = next(iter(self._known.items()))
            if len(self._known) <= self._senders_max and now - one.heard_at <= SILENT_S_MAX:
                return
            del self._known[sender]
