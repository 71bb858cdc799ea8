"""What a leader's decisions about one job cost, by its number of parts: CPU time of the core alone.

    python benchmarks/job_decisions.py            100, 300 and 1,000 parts
    python benchmarks/job_decisions.py 3000

One workflow with a part on each worker, from submission to the last end, without network and disk:
every record comes back at once. A cost that grows faster than the parts holds a leader's loop.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable
from functools import partial

from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import Append, Dispatch, Effect, MakeResults
from hyperscale.cluster.jobs.inputs import Ended
from hyperscale.cluster.jobs.records import Needs, Placement, Submitted
from hyperscale.cluster.jobs.settings import JobSettings

PARTS = (100, 300, 1_000)
CORES = 4


class Leader:
    """Commits what it is handed at once and keeps what workers would be sent."""

    def __init__(self) -> None:
        self.jobs = Jobs(JobSettings(), random.Random(1))
        self.sent: list[Placement] = []
        self.now = 0.0
        self.carry(self.jobs.lead(self.now, 1))

    def carry(self, effects: Iterable[Effect]) -> None:
        left = list(effects)
        while left:
            match left.pop(0):
                case Append(record):
                    left += self.jobs.applied(self.now, record)
                case Dispatch(placement):
                    self.sent.append(placement)
                case MakeResults(job_id, status, reason):
                    left += self.jobs.results_made(self.now, job_id, status, reason, b"results")

    def begin(self, parts: int) -> None:
        for number in range(parts):
            name = f"w{number:04d}"
            self.carry(self.jobs.worker_registered(self.now, name, 1, CORES, CORES, [])[1])
        needs = Needs("load", True, "auto", (), parts * CORES, 60.0, 90.0)
        self.carry(self.jobs.submit(self.now, Submitted("j", 0.0, "j", (needs,), 300.0, b""))[1])
        assert len(self.sent) == parts, len(self.sent)

    def prepare(self) -> None:
        for one in self.sent:
            self.carry(self.jobs.dispatch_answered(self.now, one, True))
            self.carry(self.jobs.prepared(self.now, one.part, one.fence, one.worker, b"")[1])

    def end(self) -> None:
        self.now += 60.0
        for one in self.sent:
            end = Ended(one.part, one.fence, one.worker, "completed", 60.0, 600, b"result", "")
            self.carry(self.jobs.ended(self.now, end)[1])
        job = self.jobs.job("j")
        assert job is not None
        assert job.status == "completed"


def main() -> None:
    print("| parts | placing | starting | ending |")
    print("|---:|---:|---:|---:|")
    for parts in [int(text) for text in sys.argv[1:]] or PARTS:
        leader, taken = Leader(), []
        for step in (partial(leader.begin, parts), leader.prepare, leader.end):
            began = time.process_time()
            step()
            taken.append(time.process_time() - began)
        print(
            f"| {parts:,} | " + " | ".join(f"{seconds * 1e3:,.0f} ms" for seconds in taken) + " |"
        )


if __name__ == "__main__":
    main()
