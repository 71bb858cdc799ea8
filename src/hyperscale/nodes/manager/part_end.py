"""The end of a part as records hold it: what its worker measured and hands on, checked first."""

from __future__ import annotations

import math

import msgspec

from hyperscale.engine.results import aggregate_of
from hyperscale.errors import RunFailed
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.nodes.protocol.parts import PartEnd

_ends = msgspec.msgpack.Decoder(PartEnd)
_encode = msgspec.msgpack.Encoder().encode


def encode_end(end: PartEnd) -> bytes:
    return _encode(end)


def decode_end(data: bytes) -> PartEnd:
    return _ends.decode(data)


def check_end(body: Body, end: PartEnd, bytes_max: int) -> None:
    """Raises RunFailed for an end that makes no sense, or that nobody could keep."""
    size_bytes = len(encode_end(end))
    if size_bytes > bytes_max:
        raise RunFailed(f"what it measured and hands on takes {size_bytes:,} bytes: too many")
    if not 0.0 <= end.measured_s < math.inf or end.iterations < 0:
        raise RunFailed(f"worker {end.worker} told a load of {end.measured_s:g} s")
    if end.state:
        facts = next(facts for facts in body.workflows if facts.name == end.part.workflow)
        aggregate_of(facts).absorb(end.state)
