"""News waiting to ride on other messages.

One piece of news per member: a newer one replaces the older. Each is sent a limited number of
times, mult x log(n+1), which reaches everybody with high probability. What was sent least goes
first, so failure news cannot starve under churn; newcomers may fill at most half of a datagram
while anything else waits. The queue is bounded; overflow drops what was told most
often, is counted and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from hyperscale.cluster.identity import NodeId
from hyperscale.cluster.membership.messages import Update, size_of

_SCAN_MAX: Final = 48  # candidates looked at per datagram; more cannot fit anyway
_SMALLEST_BYTES: Final = 12  # no update is smaller


@dataclass(slots=True)
class _News:
    subject: NodeId
    update: Update
    size: int
    join: bool
    told: int = 0


class Dissemination:
    __slots__ = ("_by_subject", "_limit", "_tiers", "maximum", "overflowed")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.overflowed = 0
        self._by_subject: dict[NodeId, _News] = {}
        # _tiers[t] holds what has been told t times, oldest first.
        self._tiers: list[dict[NodeId, _News]] = [{}]

    def __len__(self) -> int:
        return len(self._by_subject)

    def __contains__(self, subject: NodeId) -> bool:
        return subject in self._by_subject

    def add(self, update: Update, *, join: bool = False) -> None:
        """Queue news; whatever was queued about the same subject is obsolete."""
        subject = update.node_id
        self.forget(subject)
        if len(self._by_subject) >= self.maximum:
            self._drop_most_told()
        news = _News(subject, update, size_of(update), join)
        self._by_subject[subject] = news
        self._tiers[0][subject] = news

    def forget(self, subject: NodeId) -> None:
        news = self._by_subject.pop(subject, None)
        if news is not None:
            del self._tiers[news.told][subject]

    def take(self, room: int, limit: int, copies: int = 1) -> list[Update]:
        """Updates that fit into `room` bytes, counted as told `copies` times; news told `limit`
        times is finished."""
        if not self._by_subject:
            return []
        chosen = self._choose(room)
        tiers = self._tiers
        for news in chosen:
            subject, told = news.subject, news.told + copies
            del tiers[news.told][subject]
            if told >= limit:
                del self._by_subject[subject]
                continue
            news.told = told
            while len(tiers) <= told:
                tiers.append({})
            tiers[told][subject] = news
        return [news.update for news in chosen]

    def _choose(self, room: int) -> list[_News]:
        chosen: list[_News] = []
        later: list[_News] = []
        joins_room = room // 2
        for news in self._least_told():
            size = news.size
            if size > room:
                if room < _SMALLEST_BYTES:
                    break
            elif not news.join:
                chosen.append(news)
                room -= size
            elif size > joins_room:
                later.append(news)
            else:
                chosen.append(news)
                room -= size
                joins_room -= size
        for news in later:
            if news.size <= room:
                chosen.append(news)
                room -= news.size
        return chosen

    def _least_told(self) -> Iterator[_News]:
        return islice(chain.from_iterable(map(dict.values, self._tiers)), _SCAN_MAX)

    def _drop_most_told(self) -> None:
        for tier in reversed(self._tiers):
            if tier:
                self.forget(next(iter(tier)))
                self.overflowed += 1
                return


class SeenUpdates:
    """Updates judged already: gossip repeats itself, and a second judgement of the same words
    changes nothing until a row is dropped (then this memory is dropped too).

    Only their hashes are kept: a tenth of the memory, and nothing to read again to compare. Names
    are hashed with a secret of the process, so nobody can choose two updates that collide; by
    chance less than one in 2^48 does, and the next full exchange brings what was missed. Emptied
    when it is full.
    """

    __slots__ = ("_hashes", "_maximum")

    def __init__(self, maximum: int) -> None:
        self._hashes: set[int] = set()
        self._maximum = maximum

    def judge(self, updates: list[Update], judge: Callable[[Update], bool]) -> None:
        """Give each update that is new to `judge`, and remember it if that says so."""
        for update in updates:
            known = hash(update)
            if known not in self._hashes and judge(update):
                if len(self._hashes) >= self._maximum:
                    self._hashes.clear()
                self._hashes.add(known)

    def clear(self) -> None:
        self._hashes.clear()
