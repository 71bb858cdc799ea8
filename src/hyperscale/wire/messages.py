"""The catalogue of message kinds: name, struct, version, priority class, size limit.

A struct becomes a message by being added here; nothing else can be sent or received, and nothing
can be added without a priority and a limit. Fields may be added with a default (an older node
ignores them); when old senders can no longer be understood, `oldest` says since which version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import msgspec

from hyperscale.wire.errors import Malformed, Reason, Refused
from hyperscale.wire.frames import DEFAULT_LIMIT_BYTES

# The most any kind may ask for, compressed or not.
LIMIT_BYTES_MAX = 50 * 1024 * 1024
NAME_BYTES_MAX = 64


class Priority(IntEnum):
    """Which messages an overloaded node sheds first. CRITICAL is never shed."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of message. `wire_name` and `decoder` are made once, for the hot path.

    `self_judged`: not the node's admission but the handler decides whether it is let in, and must
    then be a plain function. `on_behalf`: its `asked_by` names for whom a manager asks."""

    name: str
    struct: type[msgspec.Struct]
    priority: Priority
    version: int
    oldest: int
    max_bytes: int
    wire_name: bytes = field(repr=False)
    decoder: msgspec.msgpack.Decoder[Any] = field(repr=False)
    self_judged: bool = False
    on_behalf: bool = False


class Registry:
    """The kinds two nodes may exchange."""

    def __init__(self) -> None:
        self.by_struct: dict[type[Any], Kind] = {}
        self.by_wire_name: dict[bytes, Kind] = {}
        self.largest_bytes = 0

    def add(
        self,
        struct: type[msgspec.Struct],
        *,
        priority: Priority,
        kind: str | None = None,
        max_bytes: int = DEFAULT_LIMIT_BYTES,
        version: int = 1,
        oldest: int = 1,
        self_judged: bool = False,
    ) -> Kind:
        """Make a struct a message. Its msgspec tag is its name when no other is given."""
        name = kind or getattr(struct.__struct_config__, "tag", None)
        if not isinstance(name, str) or not 0 < len(name.encode()) <= NAME_BYTES_MAX:
            raise ValueError(f"{struct.__name__} needs a kind of 1 to {NAME_BYTES_MAX} bytes")
        wire_name = name.encode()
        if struct in self.by_struct or wire_name in self.by_wire_name:
            raise ValueError(f"message kind {name!r} or {struct.__name__} is taken")
        if not 0 < max_bytes <= LIMIT_BYTES_MAX:
            raise ValueError(f"{name!r} may not be larger than {LIMIT_BYTES_MAX:,} bytes")
        if not 1 <= oldest <= version <= 255:
            raise ValueError(f"{name!r} has no sensible versions: {oldest}..{version}")
        decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(struct)
        added = Kind(
            name,
            struct,
            Priority(priority),
            version,
            oldest,
            max_bytes,
            wire_name,
            decoder,
            self_judged,
            "asked_by" in struct.__struct_fields__,
        )
        self._keep(added)
        return added

    def include(self, other: Registry) -> None:
        """Take over all kinds of another catalogue."""
        for kind in other:
            if kind.struct in self.by_struct or kind.wire_name in self.by_wire_name:
                raise ValueError(f"message kind {kind.name!r} is taken")
            self._keep(kind)

    def _keep(self, kind: Kind) -> None:
        self.by_struct[kind.struct] = self.by_wire_name[kind.wire_name] = kind
        self.largest_bytes = max(self.largest_bytes, kind.max_bytes)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.by_struct.values())

    def missing(self, structs: Iterable[type[msgspec.Struct]]) -> list[str]:
        """Those of the structs that could not be sent; a test keeps this empty."""
        return sorted(struct.__name__ for struct in structs if struct not in self.by_struct)

    def of(self, message: object) -> Kind:
        try:
            return self.by_struct[type(message)]
        except KeyError:
            raise TypeError(f"{type(message).__name__} is not a registered message") from None

    def named(self, wire_name: bytes, version: int) -> Kind:
        """The kind a peer speaks of; raises Refused by name."""
        kind = self.by_wire_name.get(wire_name)
        if kind is None:
            name = wire_name.decode("utf-8", "replace")
            raise Refused(name, "this node does not know it", code=Reason.UNKNOWN_KIND)
        if version < kind.oldest:
            raise Refused(
                kind.name,
                f"version {version} is too old, {kind.oldest} or later is needed",
                code=Reason.OLD_VERSION,
            )
        return kind


_encode = msgspec.msgpack.Encoder().encode


def encode_body(kind: Kind, message: object) -> bytes:
    """Raises Refused when our own message is larger than its kind allows."""
    body = _encode(message)
    if len(body) > kind.max_bytes:
        raise too_large(kind, len(body))
    return body


def decode_body(kind: Kind, body: bytes) -> Any:
    """The struct, or Refused with what is wrong with it."""
    if len(body) > kind.max_bytes:
        raise too_large(kind, len(body))
    try:
        return kind.decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(kind.name, f"malformed: {error}", code=Reason.MALFORMED) from None


def too_large(kind: Kind, size_bytes: int) -> Refused:
    return Refused(
        kind.name,
        f"{size_bytes:,} bytes, where {kind.max_bytes:,} are allowed",
        code=Reason.TOO_LARGE,
    )


def decode_plain(struct: type[Any], body: bytes) -> Any:
    """A struct of the protocol itself; a peer that cannot write these is beyond talking to."""
    try:
        return msgspec.msgpack.decode(body, type=struct)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"{struct.__name__.lower()}: {error}") from None
