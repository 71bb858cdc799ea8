"""What runs a job: one executor per kind of job, given the job's payload.

An executor that is cancelled (timeout, a person, the worker's stop) must leave nothing running
behind. It tells by type why a job failed, because that decides whether it is tried again.

To hand over one short job costs more than to run it: both sides are woken for each. So an executor
may offer each slot a pipeline, which is told of the jobs that will follow: its process finds the
next one waiting. What was not begun can be withdrawn at any time, exactly.

A payload's values are strings, nested ones JSON inside the string.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import msgspec

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.queue.job import Failure


async def nothing() -> None:
    """There was none before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    job_id: str
    token: int
    """To hand on to whatever the job changes, so that it too can refuse a stale run."""
    payload: Mapping[str, str]
    progress: Callable[[float], None]
    """0 to 1."""
    moved: Callable[[], None] = lambda: None
    """It wrote something, or its requests went on: it has not stalled."""
    tags: Mapping[str, str] = field(default_factory=dict)
    correlation_id: str = ""
    last_good: Callable[[], Awaitable[bytes | None]] = nothing
    """Results of the newest good run of the same schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    exit_code: int | None = None
    log: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What it measured; kept with the history of its schedule."""
    results: bytes = b""
    """Of a load test, packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    failure: Failure
    error: str
    exit_code: int | None = None
    log: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    results: bytes = b""


Result = Done | Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway:
    """It did not run: its target rests for `delay_s` more."""

    error: str
    delay_s: float


class Executor(Protocol):
    async def run(self, task: Task) -> Result: ...

    async def close(self) -> None: ...


def permanent(error: str) -> Broken:
    """A bad payload: trying again would change nothing."""
    return Broken(failure=Failure.PERMANENT, error=error)


class Pipeline(Protocol):
    async def run(self, task: Task, upcoming: Sequence[Task]) -> Result:
        """As Executor.run. `upcoming` will be run next, in this order, unless withdrawn; those
        named before need not be named again."""
        ...

    def answered(self, job_id: str) -> Result | None:
        """What became of an upcoming job that has run already, without waiting for anything; it is
        not upcoming any more. None: `run` tells."""
        ...

    def withdraw(self) -> frozenset[str]:
        """What has not begun will not. Ids of the upcoming jobs that have: they stay upcoming."""
        ...

    async def close(self) -> None:
        """The slot is done; nothing is upcoming."""
        ...


@runtime_checkable
class Pipelined(Protocol):
    def pipeline(self) -> Pipeline: ...


T = TypeVar("T")

_NESTED: Final[dict[str, Any]] = {
    "args": list[Any],
    "argv": list[str],
    "env": dict[str, str],
    "headers": dict[str, str],
    "kwargs": dict[str, Any],
    "workflows": list[str],
}
"""Of our own executors; `args` of a function may be anything."""


def check_nested(payload: Mapping[str, str]) -> None:
    """Before a job is taken: what cannot be read would fail only when it runs, far from whoever
    wrote it, and everything that shows jobs would have to expect it. Raises InvalidJob."""
    for name, type_ in _NESTED.items():
        if name in payload:
            decoded(payload, name, type_, None)


def required(payload: Mapping[str, str], name: str) -> str:
    value = payload.get(name, "")
    if not value:
        raise InvalidJob(f"the payload has no {name!r}")
    return value


def decoded(payload: Mapping[str, str], name: str, type_: type[T], default: T) -> T:
    text = payload.get(name, "")
    if not text:
        return default
    try:
        return msgspec.json.decode(text, type=type_)
    except msgspec.DecodeError as error:
        raise InvalidJob(f"{name!r} in the payload: {error}") from error
