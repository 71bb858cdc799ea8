"""What the shell tells the jobs core, and what it is answered. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Outcome, Part


@dataclass(frozen=True, slots=True)
class Accepted:
    """To be told to the client once its record is held; a duplicate may be held already."""

    job_id: str
    position: int = 0
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    reason: str
    retry_after_s: float = 0.0  # 0: it will not do later either
    conflict: bool = False  # the key, or the id, belongs to another submission


@dataclass(frozen=True, slots=True)
class Steering:
    accepted: bool
    workflows: int = 0
    error: str = ""
    again: bool = False  # not now, but worth asking again


class CpuUse(NamedTuple):
    """A machine may be idle while one of its generator processes uses up its core."""

    machine_percent: float
    generator_percent: float  # the busiest, of one core


@dataclass(frozen=True, slots=True)
class PartReport:
    """A part as its worker sees it."""

    part: Part
    fence: Fence
    state: str
    elapsed_s: float = 0.0  # load time of the workflow: skipped time counts, pauses do not
    counter: int | None = None  # what grows with the work done, and only then; None: not told
    context: bytes | None = None  # once prepared: what setup() wrote, or b""
    cores_done: int = 0  # cores of it that have no more load to make, in all
    idle_s: float = 0.0  # for so long nothing of it has moved, and nothing explains it


@dataclass(frozen=True, slots=True)
class Ended:
    part: Part
    fence: Fence
    worker: str
    outcome: Outcome
    measured_s: float
    iterations: int
    result: bytes
    error: str = ""
    lost: str = ""  # as in `PartEnded`


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer to a worker that asks for more time."""

    granted: bool
    seconds: float = 0.0
    remaining: int = 0
    denial: str = ""
    warning: bool = False
    grace_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What managers had heard of a part that is lost; no result: nobody remembers."""

    at_s: float  # of the workflow's load time
    iterations: int
    result: bytes
    pace: float = 0.0  # iterations a second of the fastest part of its workflow


@dataclass(frozen=True, slots=True)
class LossFact:
    """`resumed_at_s` is None when nobody took the part over."""

    workflow: str
    worker: str
    at_s: float
    resumed_at_s: float | None
    cores: int
    total_cores: int
    sentence: str


Unwanted = tuple[tuple[Part, Fence], ...]
"""Parts a worker holds that nobody waits for: to be ended."""
