"""What the scheduler's log lines say where a program reads them again (`journal`, `analysis`):
whoever writes such a line and whoever looks for it name the same constant."""

from __future__ import annotations

from typing import Final

# A job's way.
SUBMITTED: Final = "job submitted"
CLAIMED: Final = "job claimed"
ENDED: Final = "job ended"
BACK: Final = "job goes back"
LOST: Final = "job lost"
REFUSED: Final = "report refused"
KEY_REUSED: Final = "key used for other content"

# Who leads.
LEADING: Final = "leading"
ELECTION_AWAY: Final = "election service does not answer"
TICKS_STALLED: Final = "ticks stand still: a call of the store does not return"
TERM_BROKEN: Final = "a term ended by an error"
TICKS_WAIT: Final = "ticks wait"
SET_ASIDE: Final = "schedule set aside"

# Workers.
HEARTBEAT_LOST: Final = "heartbeat not delivered"
REPLACED: Final = "another process took this worker's id: stopping"
UNREGISTERED: Final = "registration refused"
CUT_OFF: Final = "silent workers answer, waiting"
MASS_SILENCE: Final = "most workers are silent at once, waiting"

# A store that does not answer, as each part of a scheduler says it.
STORE_AWAY: Final = "the store does not answer"
CLAIMS_WAIT: Final = "claims wait for the store"
REPORTS_WAIT: Final = "reports wait for the store"
INTERRUPTED: Final = "coordination interrupted"
AUDIT_LOST: Final = "audit row not stored"
