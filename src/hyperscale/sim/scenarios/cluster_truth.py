"""What really happened in a simulated cluster, for its checkers: load as the stages made it, and
records as managers applied them. The code under test knows nothing of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Dispatched, Finished, JobRecord, Part, Submitted
from hyperscale.nodes.protocol.parts import DispatchPart
from hyperscale.sim.host import SimHost
from hyperscale.sim.stage import SimPerformer


@dataclass(slots=True, eq=False)
class Performance:
    """A part on a stage, from its acceptance on."""

    host: SimHost
    order: DispatchPart
    performer: SimPerformer
    began: bool = False
    requests: int = 0

    @property
    def where(self) -> str:
        return f"{self.host.name}/{self.host.generation}"

    @property
    def loading(self) -> bool:
        """Generators end with the worker that started them."""
        return self.began and not self.host.process.dead and self.performer.loading


@dataclass(slots=True)
class Truth:
    performances: dict[Part, list[Performance]] = field(default_factory=lambda: defaultdict(list))
    log: dict[int, JobRecord] = field(default_factory=dict)
    """What was applied anywhere, by its place in the log."""
    payloads: dict[int, bytes] = field(default_factory=dict)
    jobs: dict[str, Submitted] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    """The first end of each job: later ones count for nothing."""
    placed: dict[tuple[Part, Fence], str] = field(default_factory=dict)
    newest: dict[Part, Fence] = field(default_factory=dict)

    def committed(self, index: int, payload: bytes, record: JobRecord) -> None:
        self.log[index], self.payloads[index] = record, payload
        match record:
            case Submitted(idempotency_key=key):
                if record.job_id not in self.jobs and (not key or key not in self.keys):
                    self.jobs[record.job_id] = record
                    if key:
                        self.keys[key] = record.job_id
            case Finished():
                self.finished.setdefault(record.job_id, record)
            case Dispatched():
                for one in record.placements:
                    self.placed[one.part, one.fence] = one.worker
                    self.newest[one.part] = max(one.fence, self.newest.get(one.part, one.fence))
            case _:
                pass

    def of_job(self, job_id: str) -> list[Performance]:
        return [
            one
            for part, performances in self.performances.items()
            if part.job_id == job_id
            for one in performances
        ]

    def unfinished(self) -> list[str]:
        return [job_id for job_id in self.jobs if job_id not in self.finished]
