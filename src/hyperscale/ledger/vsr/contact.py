"""Heartbeats between two nodes, one for all groups that they share.

A node that is primary of many groups sends each other node one heartbeat. In it, the groups of both
are told as digests: groups are dealt to buckets, and a digest is the exclusive or over the groups
of one bucket in which the sender is primary and the other one a member. Whoever gets it has digests
of its own, over the groups in which it follows the sender. Where the two are equal both mean the
same groups in the same views, and the answer is a promise for each of them. Where they differ the
primary tells each group of that bucket by itself, and somebody learns what it did not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from math import inf

from hyperscale.ledger.vsr.messages import Heartbeat, HeartbeatOk

BUCKETS = 64
BEATS_MAX = 64  # that are remembered; an answer to an older one renews nothing


def bucket_of(group: str) -> int:
    return blake2b(group.encode(), digest_size=2).digest()[0] % BUCKETS


def digest_of(group: str, token: tuple[int, int]) -> int:
    data = f"{group} {token[0]} {token[1]}".encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest())


class Contact:
    """What this node knows of another one."""

    def __init__(self, life: int) -> None:
        """`life` differs at every start, so that nobody answers a heartbeat of another life."""
        self._life = life
        self._number = 0
        self._sent_at: dict[int, float] = {}
        self._their_life = 0
        self.answered_at = -inf  # when the last heartbeat that it answered was sent
        self.promised_at = [-inf] * BUCKETS  # the same, by bucket, where digests were equal
        self.heard_at = [-inf] * BUCKETS  # when its own heartbeats came

    def beat(self, now: float, digests: Sequence[int]) -> Heartbeat:
        self._number += 1
        self._sent_at[self._number] = now
        self._sent_at.pop(self._number - BEATS_MAX, None)
        return Heartbeat(self._life, self._number, tuple(digests))

    def answer(self, now: float, beat: Heartbeat, digests: Sequence[int]) -> HeartbeatOk:
        differ = []
        for bucket, (theirs, ours) in enumerate(zip(beat.digests, digests, strict=True)):
            if theirs == ours:
                self.heard_at[bucket] = now
            else:
                differ.append(bucket)
        return HeartbeatOk(beat.life, beat.number, tuple(differ), self._life)

    def answered(self, answer: HeartbeatOk) -> bool:
        """Whether it has another life than the one that was known here."""
        sent_at = self._sent_at.get(answer.number)
        if answer.life != self._life or sent_at is None:
            return False
        self.answered_at = max(self.answered_at, sent_at)
        for bucket in set(range(BUCKETS)).difference(answer.differ):
            self.promised_at[bucket] = max(self.promised_at[bucket], sent_at)
        is_new = answer.own_life != self._their_life
        self._their_life = answer.own_life
        return is_new
