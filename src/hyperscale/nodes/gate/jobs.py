"""The jobs that this gate holds: each is the fold of what its group has committed."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from hyperscale.cluster.invariants import invariant
from hyperscale.nodes.gate.events import (
    AnyEvent,
    Begun,
    Commanded,
    Completed,
    Created,
    Ended,
    Judged,
    Lost,
    Told,
    Withdrawn,
)
from hyperscale.nodes.manager.condensing import condensed_body
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.nodes.protocol.sealing import UNSEALED, Sealing


@dataclass(slots=True)
class GateJob:
    job_id: str
    submitted: Created
    known_since: float  # by this gate's own clock
    commands: list[Commanded] = field(default_factory=list)
    begun: Begun | None = None
    told: dict[str, Told] = field(default_factory=dict)
    judged: dict[tuple[str, int], tuple[float | None, float | None]] = field(default_factory=dict)
    ends: dict[str, Ended | Lost] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    completed: Completed | None = None
    over_since: float = 0.0  # by this gate's own clock
    sealing: Sealing = UNSEALED
    _body: Body | None = None

    @property
    def opened_body(self) -> Body:
        """With its code and variables. Raises RunFailed."""
        return self.sealing.open_body(self.body)

    @property
    def body(self) -> Body:
        if self._body is None:
            self._body = msgspec.msgpack.decode(self.submitted.body, type=Body)
        return self._body

    @property
    def is_over(self) -> bool:
        return self.completed is not None

    @property
    def running_in(self) -> list[str]:
        """Datacenters of which the end is not known."""
        return [name for name in self.submitted.datacenters if name not in self.ends]

    @property
    def is_held(self) -> bool:
        """Its load begins in several datacenters at once."""
        return len(self.submitted.datacenters) > 1

    @property
    def is_paused(self) -> bool:
        actions = [command.steer.action for command in self.commands]
        return next((one for one in reversed(actions) if one in ("pause", "resume")), "") == "pause"

    @property
    def to_withdraw(self) -> list[str]:
        """Datacenters that were given up, and may run it all the same."""
        return [
            name
            for name, end in self.ends.items()
            if isinstance(end, Lost) and name not in self.withdrawn
        ]

    @property
    def ending(self) -> str:
        """ "cancel" or "stop", once that was asked for."""
        actions = [command.steer.action for command in self.commands]
        return next((one for one in reversed(actions) if one in ("cancel", "stop")), "")

    def apply(self, now: float, event: AnyEvent) -> None:
        match event:
            case Commanded():
                self.commands.append(event)
            case Begun():
                self.begun = self.begun or event
            case Judged():
                self.judged[event.workflow, event.number] = (event.bad_since_s, event.crossing)
            case Told(datacenter=name, requests=requests):
                before = self.told.get(name)
                if name not in self.ends and (before is None or before.requests <= requests):
                    self.told[name] = event
            case Ended(datacenter=name) | Lost(datacenter=name):
                invariant(name in self.submitted.datacenters, "only its own datacenters end a job")
                self.ends.setdefault(name, event)
                self.told.pop(name, None)
            case Withdrawn(datacenter=name):
                invariant(isinstance(self.ends.get(name), Lost), "what was lost is withdrawn")
                self.withdrawn.add(name)
            case Completed():
                invariant(not self.running_in, "a job is complete when it is over everywhere")
                if self.completed is None:
                    self.completed, self.over_since = event, now
                    self._condense()
            case Created():
                pass

    def _condense(self) -> None:
        """The numbers of all datacenters are in its results by now, and nobody runs it any more."""
        created = condensed(self.submitted)
        assert isinstance(created, Created)
        self.submitted, self._body = created, None
        for name, end in self.ends.items():
            less = condensed(end)
            assert isinstance(less, Ended | Lost)
            self.ends[name] = less


def condensed(event: AnyEvent) -> AnyEvent:
    """What a listing or a watcher is told of a job that is over."""
    match event:
        case Created(body=body):
            return replace(event, body=condensed_body(body) if body else b"")
        case Ended():
            return replace(event, results=b"", states={})
        case Lost():
            return replace(event, states={})
    return event


class GateJobs:
    def __init__(self, sealing: Sealing = UNSEALED) -> None:
        self._sealing = sealing
        self._jobs: dict[str, GateJob] = {}
        self._unsettled: dict[str, GateJob] = {}

    def apply(self, now: float, job_id: str, event: AnyEvent) -> None:
        if isinstance(event, Created):
            job = self._jobs.setdefault(job_id, GateJob(job_id, event, now, sealing=self._sealing))
            self._unsettled[job_id] = job
        invariant(job_id in self._jobs, "the first event of a job creates it")
        job = self._jobs[job_id]
        job.apply(now, event)
        if job.is_over and not job.to_withdraw:
            self._unsettled.pop(job_id, None)

    def forget(self, job_id: str) -> None:
        self._jobs.pop(job_id, None)
        self._unsettled.pop(job_id, None)

    def job(self, job_id: str) -> GateJob | None:
        return self._jobs.get(job_id)

    def jobs(self) -> list[GateJob]:
        return list(self._jobs.values())

    def unsettled(self) -> list[GateJob]:
        """Those with which there is something left to do."""
        return list(self._unsettled.values())
