"""What jobs are made of, decoded once for as long as a job is worked on."""

from __future__ import annotations

import msgspec

from hyperscale.cluster.jobs.state import JobState
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.workload.facts import WorkflowFacts

_bodies = msgspec.msgpack.Decoder(Body)


class Bodies:
    def __init__(self) -> None:
        self._decoded: dict[str, Body] = {}

    def of(self, job: JobState) -> Body:
        body = self._decoded.get(job.job_id)
        if body is None:
            body = self._decoded[job.job_id] = _bodies.decode(job.submitted.body)
        return body

    def facts(self, job: JobState, workflow: str) -> WorkflowFacts:
        return self.of(job).facts(workflow)

    def forget(self, job_id: str) -> None:
        self._decoded.pop(job_id, None)
