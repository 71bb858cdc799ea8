"""What replicas of one group say to each other, and what they write to disk before they say it.

Names are those of "Viewstamped Replication Revisited" (Liskov and Cowling, 2012). `Prepare` also
carries the commit number and the heartbeat, so that one message serves all three.
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


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    epoch: int
    view: int


class Beat(msgspec.Struct, frozen=True, array_like=True):
    """Which heartbeat of which life of the primary: the answer renews its lease from the moment
    at which this one was sent."""

    life: int
    number: int


class Prepare(Message, frozen=True, array_like=True):
    after_op: int
    entries: tuple[Entry, ...]
    commit: int
    beat: Beat


class PrepareOk(Message, frozen=True, array_like=True):
    op: int  # everything up to here is on this replica's disk
    beat: Beat


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
)


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

encode = msgspec.msgpack.Encoder().encode
decode_message = msgspec.msgpack.Decoder(AnyMessage).decode
decode_saved = msgspec.msgpack.Decoder(Saved).decode
