"""Why an attempt ended badly. The class decides the route (S-55), never the text."""

from __future__ import annotations

from enum import StrEnum


class Failure(StrEnum):
    TRANSIENT = "TRANSIENT"
    """The network hiccuped: again at once, spread over a second."""
    ERROR = "ERROR"
    """The job raised or returned failure: backoff."""
    EXHAUSTED = "EXHAUSTED"
    """The machine had no room: backoff, rather on another worker."""
    TIMEOUT = "TIMEOUT"
    """Killed at its timeout, or its progress stalled: backoff, rather on another worker."""
    WORKER_LOST = "WORKER_LOST"
    """The lease ended without a word: backoff, rather on another worker."""
    NEVER_STARTED = "NEVER_STARTED"
    """Claimed too often without one start: it kills its workers (T-3)."""
    PERMANENT = "PERMANENT"
    """Bad payload, unknown kind, logic error: no retry."""
    CANCELLED = "CANCELLED"
    """Somebody asked for it."""
