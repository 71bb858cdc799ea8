"""Durable job records: what a manager asks of them, whoever keeps them.

One leader writes, every replica reads. A record is a fact about a job: who wrote it (the fence),
what kind of fact, and bytes that only the writer understands. Once `append` returns it is never
lost and never changes its place among the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.ledger.wal.writer import Stats
from hyperscale.runtime.latency import Latency


class Record(msgspec.Struct, frozen=True, array_like=True):
    """On disk and on the wire for ever: new fields go to the end and have a default."""

    index: int
    """Its place in the one log of the cluster; without gaps only over all jobs together."""
    job_id: str
    kind: int
    """Belongs to whoever writes."""
    payload: bytes
    fence: Fence
    keep_s: float | None = None
    """The job has ended: everything about it is forgotten this long after."""


class RecordsError(HyperscaleError):
    maybe_written = False
    """True: nobody knows yet whether the record will last. Ask again with the same key."""


class NotLeader(RecordsError):
    """This node does not lead, or does not lead any more; somebody else takes records."""


class Deposed(NotLeader):
    """Leadership ended while the record was under way."""

    maybe_written = True


class QuorumUnavailable(RecordsError):
    """Too few voters can be reached; nothing was written."""


class QuorumTimeout(RecordsError):
    """A majority did not confirm in time. The record stays under way."""

    maybe_written = True


class RecordsFull(RecordsError):
    """No room for another job, or too much is under way; nothing was written."""


class StaleFence(RecordsError):
    """The job has a record of somebody newer; nothing was written."""


class RecordTooLarge(RecordsError, BadInput):
    """Nothing was written."""


class PeerUnreachable(Exception):
    """What a `Send` raises when there is no answer; OSError and TimeoutError mean the same."""


Send: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""Takes a voter's name and a request, returns that voter's `handle` of it. May be slow, may fail,
may deliver twice or out of order; must not deliver one voter's request as another's."""


@dataclass(frozen=True, slots=True)
class Status:
    """For metrics and for people."""

    role: str
    """follower, recovering, leading or failed"""
    term: int
    """Nothing below it is accepted any more."""
    ready: bool
    """It leads and takes records."""
    last_index: int
    durable_index: int
    commit_index: int
    applied_index: int
    jobs: int
    bytes: int
    """Of all records in memory."""
    disk_bytes: int
    """Of the log on disk, without checkpoints."""
    checkpoints_failed: int
    """Without them the log grows; the disk is probably full."""
    pending: int
    """Records of this leader that a majority has not confirmed yet."""
    reachable: tuple[str, ...]
    """Voters that answered lately, while leading; this one included."""
    behind: tuple[tuple[str, int], ...]
    """While leading: how many records each other voter lacks."""
    pending_share: float = 0.0
    """Of as many as may be, or of their bytes; at 1 no more are taken."""
    newcomer: bool = False
    """It began with an empty disk and does not count until a leader has brought it up to date."""


@dataclass(slots=True)
class AppendLatency:
    """How long the stages of a record take on the leader that writes it.

    `sync` is this node's own disk, by batch: writing and syncing. `quorum` is from the proposal
    until a majority has it on disk. `apply` is what this node does with a record that is held.
    `append` is the whole, as its caller waits for it.
    """

    sync: Latency
    quorum: Latency = field(default_factory=Latency)
    apply: Latency = field(default_factory=Latency)
    append: Latency = field(default_factory=Latency)
    _proposed: dict[int, float] = field(default_factory=dict)

    def proposed(self, index: int, now: float) -> None:
        self._proposed[index] = now

    def held(self, index: int, now: float) -> None:
        began = self._proposed.pop(index, None)
        if began is not None:
            self.quorum.add(now - began)

    def deposed(self) -> None:
        """What is under way is not ours to see through any more."""
        self._proposed.clear()


class Records(Protocol):
    @property
    def on_applied(self) -> list[Callable[[Record], None]]:
        """Called on every replica with each record once it is committed, in the order of the log.
        Not called for what `open` found: read `jobs` and `records` after it. One that raises ends
        the records: see `failed`."""
        ...

    @property
    def on_forgotten(self) -> list[Callable[[str], None]]:
        """Called on every replica when all of a job was forgotten."""
        ...

    async def open(self) -> None:
        """Read what is on disk. Raises LogDamaged, LogCompacted, LogFailed."""
        ...

    async def lead(self, term: int) -> None:
        """The election made this node leader of `term`: find everything that may have been
        acknowledged, make it safe under the new term, and be ready. Raises NotLeader when a newer
        term is known, QuorumUnavailable when no majority answers in time; may then be called again
        with the same term."""
        ...

    def follow(self, term: int) -> None:
        """This node does not lead (any more); `term` is the newest the election knows."""
        ...

    async def append(
        self, job_id: str, kind: int, payload: bytes, fence: Fence, keep_s: float | None = None
    ) -> int:
        """The record's index when a majority, this node included, has it on stable storage and it
        was applied here. Being cancelled ends the waiting, not the writing. Raises NotLeader,
        Deposed, QuorumUnavailable, QuorumTimeout, StaleFence, RecordsFull, RecordTooLarge,
        LogFailed; `maybe_written` of the error tells whether the record may still appear."""
        ...

    async def forget(self, job_id: str) -> None:
        """Forget a job before its time; raises as `append`."""
        ...

    def records(self, job_id: str) -> Sequence[Record]:
        """The committed records of a job, in order; empty when there are none."""
        ...

    def jobs(self) -> list[str]:
        """Every job there is a record of, in the order of their first records."""
        ...

    def status(self) -> Status: ...

    @property
    def stages(self) -> AppendLatency:
        """How long records took, stage by stage."""
        ...

    @property
    def log_stats(self) -> Stats:
        """Of the log on this node's disk."""
        ...

    async def handle(self, peer: str, request: bytes) -> bytes:
        """The answer to another voter's request; what it promises is on stable storage. Raises
        BadInput for bytes that are no request and senders that are no voters."""
        ...

    async def failed(self) -> HyperscaleError:
        """Waits until the disk under the records has failed; the node must then stop."""
        ...

    async def close(self) -> None:
        """Stop leading, finish writing, release the files."""
        ...
