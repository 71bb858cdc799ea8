"""Live numbers on their way to the leader: merged while they wait, never dropped, never doubled.

Per part there is what waits, which grows, and what is under way, which keeps its number and its
content until a leader says that it has it, so that a repetition is recognised. Most reports are
sent one way; once a second the leader is asked how far it is, and what it lacks is told again.
Memory depends on the number of parts, not on how long a leader is away (D-54, D-55). When the
leader is overloaded numbers are held back, but it hears of us every second all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.metrics.delta import Delta
from hyperscale.metrics.merging import merge_deltas
from hyperscale.metrics.packed import PackedDelta, pack
from hyperscale.nodes.protocol.parts import PartState, Progress, ProgressAnswer, TestStop

LEVEL_HOLD_BACK = 3
WAITING_MAX = 128  # deltas of one part, before they are merged ahead of time
# Reports between two answers; at ten a second there are nine.
QUIET_MAX = 16
UNDER_WAY_MAX = 2 * QUIET_MAX  # more than a round of them only after snapshots nobody answered


@dataclass(frozen=True, slots=True)
class PartView:
    """A part as it stands now."""

    part: Part
    fence: Fence
    state: PartState
    elapsed_s: float
    cores_done: int = 0
    test_stop: TestStop | None = None
    moved: int = 0
    idle_s: float = 0.0


@dataclass(slots=True)
class _Numbers:
    fence: Fence
    seq: int = 0
    waiting: list[Delta] = field(default_factory=list)
    vus: dict[int, int] = field(default_factory=dict)
    under_way: list[PackedDelta] = field(default_factory=list)
    told_seq: int = 0  # what is under way beyond this has to be told, or told again
    settled_seq: int = 0
    snapshot_wanted: bool = False

    @property
    def untold(self) -> bool:
        return bool(self.under_way) and self.under_way[-1].seq > self.told_seq

    def add(self, core: int, delta: Delta) -> None:
        self.vus[core] = delta.vus
        self.waiting.append(delta)
        if len(self.waiting) >= WAITING_MAX:
            self.waiting = [merge_deltas(self.waiting, 0)]

    def close(self) -> None:
        """What waits gets its number and will change no more."""
        if self.waiting:
            self.seq += 1
            alive = sum(self.vus.values())
            self.under_way.append(pack(merge_deltas(self.waiting, self.seq, alive)))
            self.waiting = []

    def tell(self) -> tuple[PackedDelta, ...]:
        """What the leader has not been told, in order."""
        if not self.untold and len(self.under_way) < UNDER_WAY_MAX:
            self.close()
        untold = tuple(delta for delta in self.under_way if delta.seq > self.told_seq)
        self.told_seq = self.seq
        return untold

    def settle(self, seq: int) -> None:
        """The leader has all up to this one, and nothing of what it was told beyond."""
        self.settled_seq = max(self.settled_seq, min(seq, self.seq))
        self.under_way = [delta for delta in self.under_way if delta.seq > self.settled_seq]
        self.told_seq = self.settled_seq


class ReportBuffer:
    def __init__(self) -> None:
        self._numbers: dict[Part, _Numbers] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def waiting(self) -> bool:
        """There is something worth a message."""
        return any(
            one.waiting or one.untold or one.snapshot_wanted for one in self._numbers.values()
        )

    def open(self, part: Part, fence: Fence) -> None:
        self._numbers[part] = _Numbers(fence)

    def drop(self, part: Part, fence: Fence) -> None:
        """The part has ended: its end carries all its numbers."""
        known = self._numbers.get(part)
        if known is not None and known.fence == fence:
            del self._numbers[part]

    def add(self, part: Part, fence: Fence, core: int, delta: Delta) -> None:
        known = self._numbers.get(part)
        if known is not None and known.fence == fence:
            known.add(core, delta)

    def want(self, parts: Iterable[Part]) -> None:
        for part in parts:
            if part in self._numbers:
                self._numbers[part].snapshot_wanted = True

    def next_snapshot(self) -> tuple[Part, Fence] | None:
        """One at a time: each may be megabytes."""
        return next(
            (
                (part, one.fence)
                for part, one in self._numbers.items()
                if one.snapshot_wanted and len(one.under_way) < UNDER_WAY_MAX
            ),
            None,
        )

    def take(
        self, held: Iterable[PartView], snapshot: tuple[Part, bytes] | None, *, numbers: bool
    ) -> tuple[Progress, ...]:
        """One entry per part. Without `numbers`, states only.

        A snapshot is of this moment: all that waits is in it. Therefore what waits is closed under
        the number that the snapshot names, and stays under way like any other: should the snapshot
        be lost its numbers are not, should its answer be lost they are not counted twice."""
        return tuple(self._entry(one, snapshot, numbers) for one in held)

    def _entry(
        self, held: PartView, snapshot: tuple[Part, bytes] | None, numbers: bool
    ) -> Progress:
        known = self._numbers.get(held.part)
        plain = Progress(
            part=held.part,
            fence=held.fence,
            state=held.state,
            elapsed_s=held.elapsed_s,
            cores_done=held.cores_done,
            test_stop=held.test_stop,
            moved=held.moved,
            idle_s=held.idle_s,
        )
        if known is None or known.fence != held.fence or not numbers:
            return plain
        told = msgspec.structs.replace(plain, settled_seq=known.settled_seq)
        if snapshot is not None and snapshot[0] == held.part:
            known.close()
            known.told_seq = known.seq
            return msgspec.structs.replace(told, snapshot=snapshot[1], snapshot_seq=known.seq)
        return msgspec.structs.replace(told, deltas=known.tell())

    def answered(self, sent: Iterable[Progress], taken: Sequence[int]) -> None:
        """How far the leader is with each part of a report."""
        for entry, seq in zip(sent, taken, strict=False):
            known = self._numbers.get(entry.part)
            if known is None or known.fence != entry.fence:
                continue
            if entry.snapshot:
                known.snapshot_wanted = False
            known.settle(seq)

    def unanswered(self) -> None:
        """Nobody knows what became of the last reports: all of it is told again."""
        for known in self._numbers.values():
            known.told_seq = known.settled_seq


class ReportPace:
    """When the next report is due (D-55)."""

    def __init__(self, now: float, flush_s: float, contact_s: float) -> None:
        self._flush_s = flush_s
        self._contact_s = contact_s
        self._delay_s = 0.0
        self._level = 0
        self._sent_at = now
        self._urgent = True
        self._asked_at: float | None = None
        self._quiet = 0

    @property
    def holding_back(self) -> bool:
        return self._level >= LEVEL_HOLD_BACK

    def due_at(self, waiting: bool) -> float:
        if self._urgent:
            return self._sent_at
        if not waiting or self.holding_back:
            return self._sent_at + self._contact_s
        return self._sent_at + self._flush_s + self._delay_s

    def may_be_quiet(self, now: float) -> bool:
        """Whether the next report needs no answer: the leader has given one lately, takes numbers
        at all, and nothing is urgent."""
        return (
            self._asked_at is not None
            and now < self._asked_at + self._contact_s
            and self._quiet < QUIET_MAX
            and not self._urgent
            and not self.holding_back
        )

    def sent(self, now: float, *, quiet: bool = False) -> None:
        self._sent_at = now
        self._urgent = False
        if quiet:
            self._quiet += 1
        else:
            self._asked_at, self._quiet = None, 0

    def hear(self, answer: ProgressAnswer) -> None:
        self._asked_at = self._sent_at
        self._level = answer.level
        self._delay_s = min(max(answer.delay_ms, 0) / 1000, self._contact_s)

    def hasten(self) -> None:
        """Something that should not wait: a changed state, free cores."""
        self._urgent = True

    def begin_anew(self) -> None:
        """A new leader has not complained yet."""
        self._level = 0
        self._delay_s = 0.0
        self._urgent = True
        self._asked_at = None
