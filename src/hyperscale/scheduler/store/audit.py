"""Who did what, as a chain in which an edited row can be told."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from hyperscale.scheduler.instants import Instant

AUDIT_TEXT_MAX: Final = 4096


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what. `digest` covers the row and the digest before it: an edited row breaks the
    chain from there on."""

    sequence: int = 0
    at: Instant
    actor: str
    role: str = ""
    action: str
    target: str
    outcome: str
    source: str = ""
    detail: str = ""
    digest: str = ""


def chained(row: Audit, before: Audit | None) -> Audit:
    sequence = 1 if before is None else before.sequence + 1
    bare = msgspec.structs.replace(row, sequence=sequence, digest="")
    previous = "" if before is None else before.digest
    digest = hashlib.sha256(previous.encode() + msgspec.json.encode(bare)).hexdigest()
    return msgspec.structs.replace(bare, digest=digest)


def broken_at(rows: list[Audit], before: Audit | None = None) -> int | None:
    """Sequence number of the first row that does not follow from the one before it."""
    for row in rows:
        if chained(row, before) != row:
            return row.sequence
        before = row
    return None
