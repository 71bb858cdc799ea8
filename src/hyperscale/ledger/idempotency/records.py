"""What the ledger writes about a key: family, code, then the fields as a MessagePack array.

`at_ms` is the ledger's own time (see `LedgerTime`), a count of running time and not a date. Codes
and fields are frozen as those of job events are; here every code matters, so an unknown one is
refused.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, TypeAlias

import msgspec

from hyperscale.ledger.journal import NEWER_HINT, Family, UnreadableRecord, plain_text


class Code(IntEnum):
    """On disk for ever: a number is never changed and never used again."""

    RESERVED = 1
    COMMITTED = 2
    REJECTED = 3
    RELEASED = 4
    RENEWED = 5


class Reserved(msgspec.Struct, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.RESERVED
    key: str
    scope: str
    at_ms: int
    job_id: str
    content: bytes
    source: str = ""
    """The gate that forwarded it first."""


class Committed(msgspec.Struct, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.COMMITTED
    key: str
    scope: str
    at_ms: int
    job_id: str
    content: bytes
    answer: bytes


class Rejected(msgspec.Struct, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.REJECTED
    key: str
    scope: str
    at_ms: int
    job_id: str
    content: bytes
    answer: bytes


class Released(msgspec.Struct, frozen=True, array_like=True):
    code: ClassVar[Code] = Code.RELEASED
    key: str
    scope: str
    at_ms: int


class Renewed(msgspec.Struct, frozen=True, array_like=True):
    """The reservation once more, so that its first record need not be kept. Unlike RESERVED it
    never begins anything: one that comes after the answer is an echo."""

    code: ClassVar[Code] = Code.RENEWED
    key: str
    scope: str
    at_ms: int
    job_id: str
    content: bytes


KeyRecord: TypeAlias = Reserved | Committed | Rejected | Released | Renewed

RECORDS: dict[Code, type[KeyRecord]] = {
    Code.RESERVED: Reserved,
    Code.COMMITTED: Committed,
    Code.REJECTED: Rejected,
    Code.RELEASED: Released,
    Code.RENEWED: Renewed,
}
HEAD_BYTES = 2
_encode = msgspec.msgpack.Encoder(enc_hook=plain_text).encode
_decoders: dict[int, msgspec.msgpack.Decoder[KeyRecord]] = {
    int(code): msgspec.msgpack.Decoder(kind) for code, kind in RECORDS.items()
}
_heads = {code: bytes((Family.IDEMPOTENCY, code)) for code in Code}


def encode(record: KeyRecord) -> bytes:
    return _heads[record.code] + _encode(record)


def decode(payload: bytes, lsn: int = 0) -> KeyRecord:
    if len(payload) < HEAD_BYTES or payload[0] != Family.IDEMPOTENCY:
        raise UnreadableRecord(f"record {lsn} of the log is not about an idempotency key.")
    decoder = _decoders.get(payload[1])
    if decoder is None:
        raise UnreadableRecord(
            f"record {lsn} holds an unknown idempotency event ({payload[1]}).", NEWER_HINT
        )
    try:
        return decoder.decode(memoryview(payload)[HEAD_BYTES:])
    except msgspec.DecodeError as error:
        name = Code(payload[1]).name
        raise UnreadableRecord(f"record {lsn} is no {name} as known here: {error}.") from None
