"""Job events as bytes: family, code, then the fields as a MessagePack array.

The code stands outside the array so that a reader knows what it does not know. Rule for codes of
a newer version: below `SKIPPABLE_FROM` the log is refused with the number and the record, from
there on the record is skipped (`decode` gives None).
"""

from __future__ import annotations

import msgspec

from hyperscale.ledger.jobs.events import EVENTS, SKIPPABLE_FROM, Code, JobEvent
from hyperscale.ledger.journal import NEWER_HINT, Family, UnreadableRecord, plain_text

_encode = msgspec.msgpack.Encoder(enc_hook=plain_text).encode
_decoders: dict[int, msgspec.msgpack.Decoder[JobEvent]] = {
    int(code): msgspec.msgpack.Decoder(kind) for code, kind in EVENTS.items()
}
_heads = {code: bytes((Family.JOB, code)) for code in Code}
HEAD_BYTES = 2


def encode(event: JobEvent) -> bytes:
    return _heads[event.code] + _encode(event)


def decode(payload: bytes, lsn: int = 0) -> JobEvent | None:
    """The event, or None for one that this version may skip."""
    if len(payload) < HEAD_BYTES or payload[0] != Family.JOB:
        raise UnreadableRecord(f"record {lsn} of the log is not a job event.")
    code = payload[1]
    decoder = _decoders.get(code)
    if decoder is None:
        if code >= SKIPPABLE_FROM:
            return None
        raise UnreadableRecord(f"record {lsn} holds an unknown job event ({code}).", NEWER_HINT)
    try:
        return decoder.decode(memoryview(payload)[HEAD_BYTES:])
    except msgspec.DecodeError as error:
        name = Code(code).name
        raise UnreadableRecord(f"record {lsn} is no {name} as known here: {error}.") from None
