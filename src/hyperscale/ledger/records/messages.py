"""What voters say to each other about records. Requests go through the caller's `send` and are
answered one by one; every number is bounded, so a decoded message needs no further checks."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from hyperscale.ledger.records.entries import LogEntry

Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Recover(msgspec.Struct, frozen=True, tag="recover?", array_like=True):
    """I lead `term`: accept nothing older from now on, and tell what you have."""

    term: Count


class Recovered(msgspec.Struct, frozen=True, tag="recover", array_like=True):
    """`term` is the voter's own; a refusal has a higher one, or names a rival."""

    term: Count
    granted: bool
    last_index: Count = 0
    last_term: Count = 0
    commit_index: Count = 0
    newcomer: bool = False


class Append(msgspec.Struct, frozen=True, tag="append?", array_like=True):
    """Entries that follow the one given, and how far everything is committed. Without entries it
    asks whether the voter's log reaches up to there. `round` is the leader's count of voters found
    to have begun anew; `vouches`: a newcomer that has what is committed counts from now on."""

    term: Count
    previous_index: Count
    previous_term: Count
    commit_index: Count
    entries: tuple[LogEntry, ...] = ()
    round: Count = 0
    vouches: bool = False


class Appended(msgspec.Struct, frozen=True, tag="append", array_like=True):
    """Done: the voter's log equals the leader's up to `index`, on stable storage. Not done: it may
    be equal up to `index`, and is not further."""

    term: Count
    done: bool
    index: Count = 0
    newcomer: bool = False


class Fetch(msgspec.Struct, frozen=True, tag="fetch?", array_like=True):
    """A new leader asks the voter that knows most for what itself lacks."""

    term: Count
    first_index: Count


class Fetched(msgspec.Struct, frozen=True, tag="fetch", array_like=True):
    """`dropped`: the entries asked for are covered by the state; fetch that."""

    term: Count
    granted: bool
    dropped: bool = False
    entries: tuple[LogEntry, ...] = ()


class FetchState(msgspec.Struct, frozen=True, tag="state?", array_like=True):
    """Bytes of the state from an offset on; offset 0 begins a new one."""

    term: Count
    offset: Count


class StatePart(msgspec.Struct, frozen=True, tag="state", array_like=True):
    """A part of the state up to `index`. `total` 0 is a refusal."""

    term: Count
    index: Count = 0
    index_term: Count = 0
    total: Count = 0
    offset: Count = 0
    data: bytes = b""


class Install(msgspec.Struct, frozen=True, tag="install?", array_like=True):
    """The leader sends its state to a voter that lacks entries nobody has any more."""

    term: Count
    part: StatePart


class Installed(msgspec.Struct, frozen=True, tag="install", array_like=True):
    """`offset`: what the voter has of it; all of it means that it is on stable storage."""

    term: Count
    granted: bool
    offset: Count = 0


Request: TypeAlias = Recover | Append | Fetch | FetchState | Install
Reply: TypeAlias = Recovered | Appended | Fetched | StatePart | Installed

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
