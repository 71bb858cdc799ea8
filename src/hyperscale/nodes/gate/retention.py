"""Jobs that are over are forgotten in time, by all gates of their group together.

The gate that owns a job closes its group. A group in which nobody made a job, because the client
went away, goes the same way.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hyperscale.ledger.vsr import NotPrimary, Unknown
from hyperscale.nodes.gate.job_ledger import JobLedger
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.runtime.host import Host

LOOK_S = 1.0
AT_ONCE_MAX = 200  # so that a million jobs that are due do not keep the others waiting


class Retention:
    def __init__(self, host: Host, settings: GateSettings, ledger: JobLedger) -> None:
        self._host = host
        self._settings = settings
        self._ledger = ledger
        self._empty_since: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            await self._host.clock.sleep(LOOK_S)
            await asyncio.gather(*map(self._forget, self._due()[:AT_ONCE_MAX]))

    async def _forget(self, job_id: str) -> None:
        with suppress(NotPrimary, Unknown):  # whoever owns it then tries again
            await self._ledger.forget(job_id)

    def _due(self) -> list[str]:
        now, jobs = self._host.clock.now(), self._ledger.jobs
        owned = self._ledger.owned_groups()
        empty = [job_id for job_id in owned if jobs.job(job_id) is None]
        self._empty_since = {job_id: self._empty_since.get(job_id, now) for job_id in empty}
        due = [
            job_id
            for job_id, since in self._empty_since.items()
            if now >= since + self._settings.key_kept_s
        ]
        known = filter(None, map(jobs.job, owned))
        return due + [job.job_id for job in known if self._is_due(now, job)]

    def _is_due(self, now: float, job: GateJob) -> bool:
        done, settings = job.completed, self._settings
        if done is None or job.to_withdraw:
            return False
        is_good = done.status == "completed"
        kept_s = settings.completed_kept_s if is_good else settings.failed_kept_s
        return now >= job.over_since + max(kept_s, settings.key_kept_s)
