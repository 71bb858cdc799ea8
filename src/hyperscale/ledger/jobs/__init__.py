"""Jobs as event logs: frozen events, a pure fold to states, bounded histories."""

from hyperscale.ledger.jobs.book import JobBook, JobSettings, TooManyJobs
from hyperscale.ledger.jobs.events import (
    Code,
    JobAccepted,
    JobCancellationAcked,
    JobCancellationRequested,
    JobCompleted,
    JobCreated,
    JobEvent,
    JobFailed,
    JobProgressReported,
    JobTimedOut,
)
from hyperscale.ledger.jobs.history import HistoryTrimmed, Written
from hyperscale.ledger.jobs.ledger import JobLedger
from hyperscale.ledger.jobs.state import EventRefused, JobState, Part, Refusal, Status, fold

__all__ = [
    "Code",
    "EventRefused",
    "HistoryTrimmed",
    "JobAccepted",
    "JobBook",
    "JobCancellationAcked",
    "JobCancellationRequested",
    "JobCompleted",
    "JobCreated",
    "JobEvent",
    "JobFailed",
    "JobLedger",
    "JobProgressReported",
    "JobSettings",
    "JobState",
    "JobTimedOut",
    "Part",
    "Refusal",
    "Status",
    "TooManyJobs",
    "Written",
    "fold",
]
