"""Small things under compare-and-set, and the audit chain."""

from __future__ import annotations

from msgspec.structs import replace

from hyperscale.scheduler.errors import InvalidJob, VersionConflict
from hyperscale.scheduler.queue.operations import EPOCH_KEY, fence
from hyperscale.scheduler.store.audit import AUDIT_TEXT_MAX, Audit, chained
from hyperscale.scheduler.store.tables import AUDIT_HEAD, AUDITS, EPOCHS, VALUES, Records, audit_key
from hyperscale.scheduler.store.types import VALUE_BYTES_MAX, Value

_HEAD_KEY = "newest"


def put(records: Records, key: str, data: bytes, version: int) -> Value:
    if len(data) > VALUE_BYTES_MAX:
        raise InvalidJob(f"value of {key!r} has {len(data)} bytes", f"at most {VALUE_BYTES_MAX}")
    _compare(records, key, version)
    value = Value(data, records.token())
    records.put(VALUES, key, value)
    return value


def delete(records: Records, key: str, version: int) -> None:
    _compare(records, key, version)
    records.drop(VALUES, key)


def audit(records: Records, row: Audit) -> Audit:
    row = replace(row, detail=row.detail[:AUDIT_TEXT_MAX])
    row = chained(row, records.get(AUDIT_HEAD, _HEAD_KEY))
    records.put(AUDITS, audit_key(row.sequence), row)
    records.put(AUDIT_HEAD, _HEAD_KEY, row)
    return row


def raise_epoch(records: Records, epoch: int) -> None:
    fence(records, epoch)
    records.put(EPOCHS, EPOCH_KEY, epoch)


def _compare(records: Records, key: str, version: int) -> None:
    known = records.get(VALUES, key)
    if (0 if known is None else known.version) != version:
        raise VersionConflict("value", key)
