"""Damaged bytes into everything that `make fuzz` fuzzes; what it found is told here as well."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyperscale.engine import unpacking
from hyperscale.engine.source import AttachedFiles, BundleSource, decode_source, encode_source
from hyperscale.errors import BadInput
from hyperscale.ledger.wal import segment
from tests.fuzz.targets import TARGETS

bends = st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 255)), max_size=6)


@pytest.mark.parametrize("name", sorted(TARGETS))
@settings(max_examples=40, suppress_health_check=[HealthCheck.differing_executors])
@given(which=st.integers(0, 50), bends=bends, cut=st.integers(0, 5_000))
def test_damaged_bytes_are_refused_or_read(
    name: str, which: int, bends: list[tuple[int, int]], cut: int
) -> None:
    seeds = list(TARGETS[name].seeds())
    data = bytearray(seeds[which % len(seeds)])
    for at, value in bends:
        data[at % len(data)] = value
    TARGETS[name].feed(bytes(data[: max(1, cut)]))


@pytest.mark.parametrize(
    "numbers", [{"first_lsn": 2**64 - 1}, {"resume_lsn": 2**63}, {"number": 2**32 - 1}]
)
def test_a_segment_that_could_have_no_successor_is_none(numbers: dict[str, int]) -> None:
    header = segment.first_header(1, 0)._replace(**numbers)
    assert segment.decode_header(segment.encode_header(header)) is None
    TARGETS["wal"].feed(segment.encode_header(header) + bytes(200))


@pytest.mark.parametrize(
    "files", [{"a\0b": b""}, {"a": b"", "a/b": b""}, {"x" * 300: b""}, {"../x": b""}, {"": b""}]
)
def test_files_that_cannot_be_unpacked_are_refused(files: dict[str, bytes]) -> None:
    with pytest.raises(BadInput, match="the test brings a file called"):
        unpacking.unpack(files)
    unpacking.remove()


def test_a_bundle_that_says_to_be_far_too_large_is_refused_before_there_is_room_for_it() -> None:
    frame = bytearray(encode_source(BundleSource(AttachedFiles({"big": bytes(1 << 17)}), "big")))
    claimed = b"\x28\xb5\x2f\xfd\xe0" + (1 << 50).to_bytes(8, "little") + frame[9:]
    with pytest.raises(BadInput, match="more than 536,870,912 bytes"):
        decode_source(claimed)
