"""What a replica remembers: the fold of everything it ever wrote to its disk.

The replica changes it only by records that it saves, so what a restart finds is what it was.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hyperscale.cluster.invariants import invariant
from hyperscale.ledger.vsr.messages import Adopted, Appended, Entry, GroupImage, Promised, Saved


class ReplicaState:
    def __init__(self, members: tuple[str, ...]) -> None:
        """A group that begins."""
        self.first_members = self.members = members
        self.epoch = 0
        self.view = 0
        self.normal_view = 0  # the last view whose log this is
        self.log: list[Entry] = []
        self.op_of: dict[str, int] = {}  # by request

    @classmethod
    def of(cls, image: GroupImage) -> ReplicaState:
        state = cls(image.first_members)
        state.epoch, state.view, state.members = image.epoch, image.view, image.members
        state.normal_view = image.normal_view
        state._extend(image.log)
        return state

    def image(self, group: str) -> GroupImage:
        log = tuple(self.log)
        told = (self.epoch, self.view, self.normal_view, self.members, log)
        return GroupImage(group, self.first_members, *told)

    def condense(self, op: int, payload: bytes) -> None:
        """Less to keep of an operation of which everybody was told."""
        self.log[op - 1] = msgspec.structs.replace(self.log[op - 1], payload=payload)

    @property
    def everybody(self) -> set[str]:
        """Who was ever in the group."""
        return {*self.first_members}.union(*(entry.members for entry in self.log))

    @property
    def op(self) -> int:
        return len(self.log)

    @property
    def epoch_op(self) -> int:
        """The last one of the epochs before."""
        ends = [entry.op for entry in self.log if entry.members]
        return ends[self.epoch - 1] if self.epoch else 0

    @property
    def members_before(self) -> tuple[str, ...]:
        """Of the epoch before; nobody for the first one."""
        ends = [entry.members for entry in self.log if entry.members]
        return (self.first_members, *ends)[self.epoch - 1] if self.epoch else ()

    def epochs_ended(self, op: int) -> int:
        return sum(bool(entry.members) for entry in self.log[:op])

    @property
    def token(self) -> tuple[int, int]:
        return self.epoch, self.view

    @property
    def quorum(self) -> int:
        return len(self.members) // 2 + 1

    @property
    def primary(self) -> str:
        return self.primary_of(self.view)

    def primary_of(self, view: int) -> str:
        return self.members[view % len(self.members)]

    def apply(self, record: Saved) -> None:
        match record:
            case Promised(view=view):
                invariant(view > self.view, f"promises view {view} in view {self.view}")
                self.view = view
            case Appended(entries=entries):
                self._extend(entries)
            case Adopted():
                self._adopt(record)

    def _adopt(self, record: Adopted) -> None:
        invariant(
            (record.epoch, record.view) >= self.token,
            f"adopts {(record.epoch, record.view)} in {self.token}",
        )
        self.epoch, self.view, self.members = record.epoch, record.view, record.members
        self.normal_view = record.view
        for entry in self.log[record.after_op :]:
            del self.op_of[entry.request]
        del self.log[record.after_op :]
        self._extend(record.entries)

    def _extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            invariant(entry.op == self.op + 1, f"op {entry.op} follows op {self.op}")
            invariant(entry.request not in self.op_of, f"request {entry.request} is there twice")
            self.log.append(entry)
            self.op_of[entry.request] = entry.op
