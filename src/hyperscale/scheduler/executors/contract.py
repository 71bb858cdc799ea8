"""What runs a job: one executor per kind of job.

An executor that is cancelled (timeout, a person, the worker's stop) must leave nothing running
behind. It tells by type why a job failed, because that decides whether it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hyperscale.scheduler.model.failure import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    job_id: str
    token: int
    """To hand on to whatever the job changes, so that it too can refuse a stale run."""
    payload: Mapping[str, str]
    progress: Callable[[float], None]
    """0 to 1."""
    tags: Mapping[str, str] = field(default_factory=dict)
    correlation_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    exit_code: int | None = None
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    failure: Failure
    error: str
    exit_code: int | None = None
    log: str = ""


Result = Done | Broken


class Executor(Protocol):
    async def run(self, task: Task) -> Result: ...

    async def close(self) -> None: ...


def permanent(error: str) -> Broken:
    """A bad payload: trying again would change nothing."""
    return Broken(failure=Failure.PERMANENT, error=error)
