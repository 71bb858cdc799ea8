"""What a leader has written and not yet seen applied, and whether there is room for more."""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.records.api import RecordsFull, StaleFence
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.job_table import JobTable
from hyperscale.ledger.records.settings import RecordsSettings


class Pending:
    def __init__(self, settings: RecordsSettings) -> None:
        self._settings = settings
        self._newest: dict[str, tuple[int, Fence]] = {}
        self._entries = 0
        self._bytes = 0

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._newest

    def __len__(self) -> int:
        return self._entries

    @property
    def share(self) -> float:
        """How full it is, 0 to 1."""
        settings = self._settings
        return max(self._entries / settings.pending_max, self._bytes / settings.pending_bytes_max)

    def admit(self, job_table: JobTable, job_id: str, fence: Fence) -> None:
        """Raises StaleFence or RecordsFull when a record of this job cannot be written now."""
        self.check_room()
        known, newest = job_table.fence(job_id), self._newest.get(job_id)
        fences = [one for one in (known, newest and newest[1]) if one is not None]
        if not fences:
            self._check_jobs(job_table, job_id)
        elif fence < max(fences):
            raise StaleFence(
                f"job {job_id} was written to under {tuple(max(fences))},"
                f" which is newer than {tuple(fence)}"
            )

    def check_room(self) -> None:
        settings = self._settings
        if self._entries >= settings.pending_max or self._bytes >= settings.pending_bytes_max:
            raise RecordsFull(f"{self._entries:,} records wait for a majority", "try again later")

    def written(self, entry: Entry) -> None:
        self._entries += 1
        self._bytes += entry.size
        if entry.record is not None:
            self._newest[entry.record.job_id] = (entry.index, entry.record.fence)

    def applied(self, entry: Entry) -> None:
        self._entries -= 1
        self._bytes -= entry.size
        if entry.record is not None:
            newest = self._newest.get(entry.record.job_id)
            if newest is not None and newest[0] == entry.index:
                del self._newest[entry.record.job_id]

    def _check_jobs(self, job_table: JobTable, job_id: str) -> None:
        jobs = len(job_table) + len(self._newest)
        if jobs >= self._settings.jobs_max or job_table.bytes >= self._settings.bytes_max:
            raise RecordsFull(
                f"there is no room for job {job_id}: {jobs:,} jobs hold {job_table.bytes:,} bytes",
                "wait until ended jobs are forgotten",
            )
