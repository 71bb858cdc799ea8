"""What happened since this manager started, in counters that never fall.

Gauges of jobs by state fall again when ended jobs are forgotten; whoever wants to know how often
something went wrong needs these.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.records import TimedOut
from hyperscale.cluster.jobs.timeouts import elapsed_s

TIMEOUT_REASONS: Final = ("overall", "stuck", "held")
EXTENSION_ANSWERS: Final = ("granted", "denied")


@dataclass(slots=True)
class Counters:
    timeouts: Counter[str] = field(default_factory=Counter)
    extensions: Counter[str] = field(default_factory=Counter)

    def timed_out(self, jobs: JobQueries, record: TimedOut) -> None:
        """Its time was over, or nothing of it moved, or no gate said that it begins."""
        job = jobs.job(record.job_id)
        if job is not None:
            limit_s = job.submitted.timeout_s + job.extension_s
            overall = elapsed_s(job, record.age_s) >= limit_s
            why = "held" if job.is_held else "overall" if overall else "stuck"
            self.timeouts[why] += 1
