"""Jobs as bytes, in two halves: the head, written once, and the run, rewritten by every step.

Both are msgpack arrays in the order of HEAD_FIELDS and RUN_FIELDS, so that a Lua script can change
a run without knowing the head. A new field goes to the end of its half and needs a default.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import asdict, fields

from hyperscale.scheduler.queue.job import HEAD_FIELDS, RUN_FIELDS, Job
from hyperscale.scheduler.store.tables import KINDS, Kind

T = TypeVar("T")

encode: Final = msgspec.msgpack.Encoder().encode


def _half(name: str, names: tuple[str, ...]) -> type[msgspec.Struct]:
    columns: list[Any] = []
    by_name = {field.name: field for field in fields(Job)}
    for field in map(by_name.__getitem__, names):
        column = (field.name, field.type)
        columns.append(column if field.required else (*column, field.default))
    return msgspec.defstruct(name, columns, array_like=True, frozen=True, kw_only=True)


_head_values = attrgetter(*HEAD_FIELDS)
_run_values = attrgetter(*RUN_FIELDS)
_head_decoder = msgspec.msgpack.Decoder(_half("Head", HEAD_FIELDS))
_run_decoder = msgspec.msgpack.Decoder(_half("Run", RUN_FIELDS))
_decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {
    kind.name: msgspec.msgpack.Decoder(kind.type) for kind in KINDS
}


def encode_head(job: Job) -> bytes:
    return encode(_head_values(job))


def encode_run(job: Job) -> bytes:
    return encode(_run_values(job))


def decode_job(head: bytes, run: bytes) -> Job:
    return Job(**(asdict(_head_decoder.decode(head)) | asdict(_run_decoder.decode(run))))


def decode(kind: Kind[T], data: bytes) -> T:
    value: T = _decoders[kind.name].decode(data)
    return value
