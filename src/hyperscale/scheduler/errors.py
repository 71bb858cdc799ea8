"""What a store or a rule of the scheduler may refuse, by type: callers never read the text.

None of these changes anything in the store.
"""

from __future__ import annotations

from hyperscale.errors import BadInput, HyperscaleError


class SchedulerError(HyperscaleError):
    """The request was understood and refused, or the store cannot answer now."""


class InvalidJob(BadInput, SchedulerError):
    """A field of a job or schedule has a value nobody can run."""


class NotFound(SchedulerError):
    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"there is no {what} {name!r}")
        self.what = what
        self.name = name


class AlreadyExists(SchedulerError):
    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"{what} {name!r} exists already", "choose another id")
        self.what = what
        self.name = name


class DedupConflict(SchedulerError):
    """Same idempotency key, other content: one of the two callers is wrong (HTTP 409)."""

    def __init__(self, key: str, job_id: str) -> None:
        super().__init__(
            f"idempotency key {key!r} was used for job {job_id} with other content",
            "use a new key for a new job",
        )
        self.key = key
        self.job_id = job_id


class VersionConflict(SchedulerError):
    """Somebody changed it since it was read: read again, decide again."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"{what} {name!r} was changed by somebody else", "read it again")
        self.what = what
        self.name = name


class StaleLeader(SchedulerError):
    """A newer coordinator has written; whoever gets this must step down."""

    def __init__(self, epoch: int, current: int) -> None:
        super().__init__(f"coordinator epoch {epoch} was replaced by {current}")
        self.epoch = epoch
        self.current = current


class StaleSession(SchedulerError):
    """The worker id now belongs to another process; this one must stop."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"worker {worker_id!r} was registered by another process")
        self.worker_id = worker_id


class IllegalTransition(SchedulerError):
    def __init__(self, job_id: str, state: str, event: str) -> None:
        super().__init__(f"job {job_id} is {state}: {event} is not possible")
        self.job_id = job_id
        self.state = state
        self.event = event


class StoreFull(SchedulerError):
    """A bound of the store is reached; nothing was stored."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(
            f"the store holds {limit} {what}, its limit", "wait, or shorten what is kept"
        )
        self.what = what
        self.limit = limit


class StoreUnavailable(SchedulerError):
    """The store did not answer, or too many writers were in each other's way. Whether the last
    write happened is unknown: repeat it, every write of the contract may be repeated."""
