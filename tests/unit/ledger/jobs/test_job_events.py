"""The bytes of job events: frozen numbers, old records, records of a newer version."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.ledger.idempotency import IdempotencyKey
from hyperscale.ledger.jobs.codec import decode, encode
from hyperscale.ledger.jobs.events import EVENTS, SKIPPABLE_FROM, Code, JobAccepted
from hyperscale.ledger.journal import Family, UnreadableRecord
from tests.unit.ledger.golden import golden
from tests.unit.ledger.jobs.samples import SAMPLES

FROZEN = {
    "JOB_CREATED": 1,
    "JOB_ACCEPTED": 2,
    "JOB_PROGRESS_REPORTED": 3,
    "JOB_CANCELLATION_REQUESTED": 4,
    "JOB_CANCELLATION_ACKED": 5,
    "JOB_COMPLETED": 6,
    "JOB_FAILED": 7,
    "JOB_TIMED_OUT": 8,
}


def test_the_numbers_are_frozen() -> None:
    assert {code.name: code.value for code in Code} == FROZEN
    assert {family.name: family.value for family in Family} == {"JOB": 1, "IDEMPOTENCY": 2}
    assert SKIPPABLE_FROM == 128


def test_every_number_has_its_event() -> None:
    assert set(EVENTS) == set(Code)
    assert {event.code.name for event in SAMPLES.values()} == set(FROZEN)


@pytest.mark.parametrize("name", FROZEN)
def test_records_of_the_first_version_are_read_and_still_written(name: str) -> None:
    payload = golden("job-events.hex")[name]
    assert decode(payload) == SAMPLES[name]
    assert encode(SAMPLES[name]) == payload


def test_a_record_from_before_a_field_was_added_gets_its_default() -> None:
    event = decode(golden("job-events.hex")["JOB_CREATED_WITHOUT_KEY"])
    assert event == msgspec.structs.replace(SAMPLES["JOB_CREATED"], idempotency_key="")


def test_a_record_with_a_field_of_a_newer_version_is_read_without_it() -> None:
    event = SAMPLES["JOB_ACCEPTED"]
    assert isinstance(event, JobAccepted)
    fields = msgspec.msgpack.decode(encode(event)[2:])
    newer = encode(event)[:2] + msgspec.msgpack.encode([*fields, "new"])
    assert decode(newer) == event


def test_an_unknown_event_that_matters_is_refused_by_number_and_record() -> None:
    with pytest.raises(UnreadableRecord, match=r"record 17 .*\(99\)") as caught:
        decode(bytes((Family.JOB, 99)) + b"\x90", 17)
    assert "newer version" in caught.value.hint


def test_an_unknown_event_that_only_informs_is_skipped() -> None:
    assert decode(bytes((Family.JOB, SKIPPABLE_FROM)) + b"\x90") is None


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x02\x01\x90", b"\x01\x01\x90", b"\x01\x01"])
def test_bytes_that_are_no_event_are_refused(payload: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        decode(payload, 3)


def test_a_key_is_a_text_on_disk() -> None:
    key = IdempotencyKey.parse("host:17:42:0123456789abcdef")
    event = msgspec.structs.replace(SAMPLES["JOB_CREATED"], idempotency_key=key)
    assert encode(event) == golden("job-events.hex")["JOB_CREATED"]
