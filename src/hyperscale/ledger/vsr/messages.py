"""What replicas say to each other, and what they write to disk before they say it.

Names are those of "Viewstamped Replication Revisited" (Liskov and Cowling, 2012). `Prepare` also
carries the commit number. Heartbeats are of a pair of nodes, for all of their groups together.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One operation. `request` is its own id: the same request is in a log at most once."""

    op: int
    request: str
    payload: bytes
    members: tuple[str, ...] = ()  # a reconfiguration: the group from the next epoch on
    closes: bool = False  # the last one: the group is over


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    epoch: int
    view: int


class Prepare(Message, frozen=True, array_like=True):
    after_op: int
    entries: tuple[Entry, ...]
    commit: int


class PrepareOk(Message, frozen=True, array_like=True):
    op: int  # everything up to here is on this replica's disk
    commit: int


class StartViewChange(Message, frozen=True, array_like=True):
    """The sender would move to this view; with `promised` it cannot stay in the one before.
    `resigned`: the primary itself has promised, and its lease binds nobody any more."""

    promised: bool = False
    resigned: bool = False


class DoViewChange(Message, frozen=True, array_like=True):
    normal_view: int  # the last one in which the sender's log was its primary's
    log: tuple[Entry, ...]
    commit: int


class StartView(Message, frozen=True, array_like=True):
    log: tuple[Entry, ...]
    commit: int


class GetState(Message, frozen=True, array_like=True):
    commit: int


class NewState(Message, frozen=True, array_like=True):
    members: tuple[str, ...]
    after_op: int
    entries: tuple[Entry, ...]
    commit: int


class Recovery(Message, frozen=True, array_like=True):
    nonce: int


class RecoveryResponse(Message, frozen=True, array_like=True):
    nonce: int
    members: tuple[str, ...]
    log: tuple[Entry, ...] | None  # the primary's, else None
    commit: int


class StartEpoch(Message, frozen=True, array_like=True):
    """The group has moved: who is in it now, and who was before and has the log."""

    members: tuple[str, ...]
    before: tuple[str, ...]


class EpochStarted(Message, frozen=True, array_like=True):
    """The sender has the whole log of the epoch before."""


class Closed(Message, frozen=True, array_like=True):
    """The last operation of the group is committed, and the sender has put the log away."""


class ClosedOk(Message, frozen=True, array_like=True):
    """The sender has no log of the group, and will not have one."""


AnyMessage: TypeAlias = (
    Prepare
    | PrepareOk
    | StartViewChange
    | DoViewChange
    | StartView
    | GetState
    | NewState
    | Recovery
    | RecoveryResponse
    | StartEpoch
    | EpochStarted
    | Closed
    | ClosedOk
)


# -- between two nodes -------------------------------------------------------------------------


class Heartbeat(msgspec.Struct, frozen=True, array_like=True):
    """`life` and `number` tell which one of which life of the sender. `digests` stand for the
    groups, and their tokens, of which it is primary and the other one a member."""

    life: int
    number: int
    digests: tuple[int, ...]


class HeartbeatOk(msgspec.Struct, frozen=True, array_like=True):
    """The sender follows those groups, but for the buckets that differ: a promise for all of the
    others, which the primary counts from the moment at which it sent the heartbeat."""

    life: int
    number: int
    differ: tuple[int, ...]
    own_life: int


class Item(msgspec.Struct, frozen=True, array_like=True):
    group: str
    members: tuple[str, ...]  # of its first epoch, for whoever has not heard of it
    message: AnyMessage


class Bundle(msgspec.Struct, frozen=True, array_like=True):
    """All that one node has to say to another at a moment."""

    items: tuple[Item, ...] = ()
    beat: Heartbeat | None = None
    answer: HeartbeatOk | None = None


# -- on disk -----------------------------------------------------------------------------------


class Promised(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Nothing of a lower view is accepted any more."""

    view: int


class Appended(msgspec.Struct, frozen=True, array_like=True, tag=True):
    entries: tuple[Entry, ...]


class Adopted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The log after `after_op` is replaced, and is that of the primary of this view."""

    epoch: int
    view: int
    members: tuple[str, ...]
    after_op: int
    entries: tuple[Entry, ...]


Saved: TypeAlias = Promised | Appended | Adopted


class Opened(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The first record. `forgetful`: there was a disk before this one, and what it held is gone."""

    forgetful: bool


class OfGroup(msgspec.Struct, frozen=True, array_like=True, tag=True):
    group: str
    members: tuple[str, ...]  # of its first epoch
    record: Saved


class Buried(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The group is over. `untold`: who may still have a log of it; nobody: nor is this needed."""

    group: str
    untold: tuple[str, ...]


class GroupImage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """All that was saved of one group, in a checkpoint."""

    group: str
    first_members: tuple[str, ...]
    epoch: int
    view: int
    normal_view: int
    members: tuple[str, ...]
    log: tuple[Entry, ...]


encode = msgspec.msgpack.Encoder().encode
decode_bundle = msgspec.msgpack.Decoder(Bundle).decode
decode_record = msgspec.msgpack.Decoder(Opened | OfGroup | Buried).decode
