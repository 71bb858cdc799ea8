"""DNS SRV lookups as bytes in, records out (RFC 1035, RFC 2782).

The operating system's resolver, which `Network.resolve` uses, knows addresses only. This is the
one query it cannot make, so that service names work on every host and in the simulator. A
truncated answer is used as far as it goes: one live peer is enough.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from hyperscale.cluster.identity import Endpoint

DNS_PORT: Final = 53
SRV: Final = 33
INTERNET: Final = 1
OPT: Final = 41
ANSWER_BYTES_MAX: Final = 1_232  # what fits a datagram on every path; we ask for no more
NAME_BYTES_MAX: Final = 255
LABEL_BYTES_MAX: Final = 63
NAMESERVERS_MAX: Final = 3  # as the C library

_HEADER: Final = struct.Struct(">HHHHHH")
_RECORD: Final = struct.Struct(">HHIH")
_SERVICE: Final = struct.Struct(">HHH")
_RESPONSE, _RECURSION, _CODE = 0x8000, 0x0100, 0x000F
_NO_SUCH_NAME = 3


class LookupFailed(Exception):
    """The name has no such records, or the answer cannot be used."""


@dataclass(frozen=True, slots=True, order=True)
class Service:
    """Lower priority first; `weight` does not matter to somebody who asks all at once."""

    priority: int
    weight: int
    target: str
    port: int


@dataclass(frozen=True, slots=True)
class Services:
    records: tuple[Service, ...]
    lifetime_s: float


def encode_query(number: int, name: str) -> bytes:
    """A recursive question; raises ValueError for what is no name."""
    question = _encode_name(name) + struct.pack(">HH", SRV, INTERNET)
    extension = b"\0" + _RECORD.pack(OPT, ANSWER_BYTES_MAX, 0, 0)
    return _HEADER.pack(number, _RECURSION, 1, 0, 0, 1) + question + extension


def decode_answer(data: bytes, number: int, name: str) -> Services | None:
    """None: not an answer to this question, keep waiting. Raises LookupFailed."""
    if not _HEADER.size <= len(data) <= ANSWER_BYTES_MAX:
        return None
    got, flags, questions, answers, _, _ = _HEADER.unpack_from(data)
    if got != number or not flags & _RESPONSE or questions != 1:
        return None
    try:
        asked, position = _decode_name(data, _HEADER.size)
        if asked != _normal(name):
            return None
        code = flags & _CODE
        if code:
            reason = "no such name" if code == _NO_SUCH_NAME else f"the server answered {code}"
            raise LookupFailed(reason)
        return _decode_services(data, position + 4, answers)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise LookupFailed("the answer is malformed") from None


def nameservers(resolv_conf: str) -> tuple[Endpoint, ...]:
    """The servers that /etc/resolv.conf names."""
    words = [line.split() for line in resolv_conf.splitlines()]
    found = [each[1] for each in words if len(each) >= 2 and each[0] == "nameserver"]
    return tuple((address, DNS_PORT) for address in found[:NAMESERVERS_MAX])


def _decode_services(data: bytes, position: int, answers: int) -> Services:
    records: list[Service] = []
    lifetimes: list[float] = []
    for _ in range(answers):
        if position >= len(data):
            break  # truncated
        _, position = _decode_name(data, position)
        kind, family, lifetime_s, size = _RECORD.unpack_from(data, position)
        position += _RECORD.size
        if kind == SRV and family == INTERNET:
            priority, weight, port = _SERVICE.unpack_from(data, position)
            target, _ = _decode_name(data, position + _SERVICE.size)
            if target:  # "." says that the service is decidedly not available
                records.append(Service(priority, weight, target, port))
                lifetimes.append(float(lifetime_s))
        position += size
    if not records:
        raise LookupFailed("no SRV records")
    return Services(tuple(sorted(records)), min(lifetimes))


def _normal(name: str) -> str:
    return name.rstrip(".").lower()


def _encode_name(name: str) -> bytes:
    labels = _normal(name).encode("idna" if not name.isascii() else "ascii").split(b".")
    if any(not 0 < len(label) <= LABEL_BYTES_MAX for label in labels):
        raise ValueError(f"{name!r} is not a DNS name")
    encoded = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    if len(encoded) > NAME_BYTES_MAX:
        raise ValueError(f"{name!r} is too long for a DNS name")
    return encoded


def _decode_name(data: bytes, position: int) -> tuple[str, int]:
    """The name and where the record goes on. Pointers only lead backwards, so this ends."""
    labels: list[str] = []
    after: int | None = None
    limit = len(data)
    while size := data[position]:
        if size >= 0xC0:
            target = (size & 0x3F) << 8 | data[position + 1]
            after = position + 2 if after is None else after
            if target >= min(position, limit):
                raise LookupFailed("the answer is malformed")
            position = limit = target
            continue
        if size > LABEL_BYTES_MAX or position + 1 + size > len(data):
            raise LookupFailed("the answer is malformed")
        labels.append(data[position + 1 : position + 1 + size].decode("ascii").lower())
        position += 1 + size
        if sum(map(len, labels)) + len(labels) > NAME_BYTES_MAX:
            raise LookupFailed("the answer is malformed")
    return ".".join(labels), position + 1 if after is None else after
