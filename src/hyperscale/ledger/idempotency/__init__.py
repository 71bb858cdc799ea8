"""One job per submission, however often it is sent: keys, the gate's cache, the ledger."""

from hyperscale.ledger.idempotency.cache import CacheStats, GateCache
from hyperscale.ledger.idempotency.key import (
    IdempotencyKey,
    InvalidKey,
    KeyGenerator,
    content_digest,
    fingerprint,
)
from hyperscale.ledger.idempotency.ledger import IdempotencyLedger, LedgerStats
from hyperscale.ledger.idempotency.settings import PROFILES, IdempotencySettings, Profile
from hyperscale.ledger.idempotency.submission import Answer, Decision, Kind, Submissions
from hyperscale.ledger.idempotency.table import Entry, IdempotencyTable, Ruling, State, Verdict

__all__ = [
    "PROFILES",
    "Answer",
    "CacheStats",
    "Decision",
    "Entry",
    "GateCache",
    "IdempotencyKey",
    "IdempotencyLedger",
    "IdempotencySettings",
    "IdempotencyTable",
    "InvalidKey",
    "KeyGenerator",
    "Kind",
    "LedgerStats",
    "Profile",
    "Ruling",
    "State",
    "Submissions",
    "Verdict",
    "content_digest",
    "fingerprint",
]
