"""Reports on their way to the store: gathered into batches, repeated until answered.

Whoever asks gets the answer; a final report needs nobody to wait for it. The queue cannot
outgrow what the worker holds: one final report per job, and claims stop while many are unanswered.

A report that was not accepted yet is spooled, one small file each, so that a finished job stays
finished when the store is away or this process dies. It carries the worker id and the token of its
claim, so whoever finds it may send it. A file that cannot be read is set aside, never in the way of
the others.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from hyperscale.cluster.overload.backoff import grown_s
from hyperscale.runtime.logs import logger
from hyperscale.runtime.private_files import private_directory
from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.reports import Answer, Completed, Failed, Refused, Report
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.telemetry import events

FILES_MAX: Final = 10_000
FinalReport = Completed | Failed

_encode = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(FinalReport).decode


class Spool:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        private_directory(directory)
        self._kept = {path.name for path in directory.glob("*.json")}

    @property
    def full(self) -> bool:
        """No room for another report: no job should be started."""
        return len(self._kept) >= FILES_MAX

    def keep(self, report: FinalReport) -> None:
        name = _name(report)
        if name in self._kept:
            return
        path = self._directory / name
        beside = path.with_suffix(".tmp")
        with open(beside, "wb", opener=_closed_to_others) as file:
            file.write(_encode(report))
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        self._kept.add(name)

    def forget(self, report: FinalReport) -> None:
        if not self._kept:
            return
        name = _name(report)
        if name in self._kept:
            (self._directory / name).unlink(missing_ok=True)
            self._kept.discard(name)

    async def read(self) -> list[FinalReport]:
        return await asyncio.to_thread(self.left)

    def left(self) -> list[FinalReport]:
        """Oldest first."""
        found: list[FinalReport] = []
        for path in sorted(self._directory.glob("*.json"), key=_age):
            try:
                found.append(_decode(path.read_bytes()))
            except msgspec.DecodeError:
                path.rename(path.with_suffix(".unreadable"))
                self._kept.discard(path.name)
            except FileNotFoundError:
                self._kept.discard(path.name)
            else:
                self._kept.add(path.name)
        return found


def _closed_to_others(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _name(report: FinalReport) -> str:
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in report.job_id)
    return f"{safe[:100]}-{report.token}.json"


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


FINAL: Final = (Completed, Failed)
BATCH: Final = 500
RETRY_FIRST_S: Final = 0.1
RETRY_MAX_S: Final = 10.0
WORTH_KEEPING_S: Final = 1.0
"""A job that ran so long is written to disk before its report is first sent; a shorter one only
when the first try fails: to run it again costs less than a disk write for every one."""


class Reporter:
    def __init__(self, store: Store, spool: Spool, now: Callable[[], Instant]) -> None:
        self._store = store
        self._spool = spool
        self._now = now
        self._queue: list[tuple[Report, asyncio.Future[Answer] | None]] = []
        self._wake = asyncio.Event()
        self._unanswered = 0
        self._flushed = asyncio.Event()
        self._flushed.set()
        self._away = False
        self._log: Any = logger("scheduler.worker")

    @property
    def unanswered(self) -> int:
        return self._unanswered

    def ask(self, report: Report) -> asyncio.Future[Answer]:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._put(report, answer)
        return answer

    def tell(self, report: Report) -> None:
        self._put(report, None)

    def finished(self, report: Completed | Failed, ran_s: float) -> None:
        if self._away or ran_s >= WORTH_KEEPING_S:
            self._keep(report)
        self._put(report, None)

    async def send_left(self) -> None:
        """What an earlier process could not get rid of."""
        for report in await self._spool.read():
            self._put(report, None)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            if not self._queue:
                self._wake.clear()
            answers = await self._answers([report for report, _ in batch])
            for (report, asked), answer in zip(batch, answers, strict=True):
                if isinstance(answer, Exception):
                    self._failed(report, asked, answer)
                    continue
                self._unanswered -= 1
                self._answered(report, answer)
                if asked is not None and not asked.done():
                    asked.set_result(answer)
            if self._unanswered == 0:
                self._flushed.set()

    async def flushed(self) -> None:
        """Returns when everything put so far is answered; while `run` runs."""
        await self._flushed.wait()

    def _put(self, report: Report, asked: asyncio.Future[Answer] | None) -> None:
        self._unanswered += 1
        self._flushed.clear()
        self._queued(report, asked)

    def _queued(self, report: Report, asked: asyncio.Future[Answer] | None) -> None:
        self._queue.append((report, asked))
        self._wake.set()

    async def _answers(self, reports: list[Report]) -> list[Answer | Exception]:
        """One that the store fails on keeps none of the others from it."""
        try:
            return [*await self._send(reports)]
        except Exception as error:  # noqa: BLE001 - whatever it is, jobs go on ending
            if len(reports) == 1:
                return [error]
        return [(await self._answers([report]))[0] for report in reports]

    def _failed(
        self, report: Report, asked: asyncio.Future[Answer] | None, error: Exception
    ) -> None:
        """Who asked may ask again; what nobody asks for stays unanswered, and is sent again."""
        self._log.error("report failed", job_id=report.job_id, error=repr(error), exc_info=error)
        if asked is not None:
            self._unanswered -= 1
            if not asked.done():
                asked.set_exception(error)
            return
        if isinstance(report, FINAL):
            self._keep(report)
        asyncio.get_running_loop().call_later(RETRY_MAX_S, self._queued, report, None)

    async def _send(self, reports: list[Report]) -> list[Answer]:
        tries = 0
        while True:
            try:
                answers = await self._store.report_batch(reports, self._now())
                self._away = False
                return answers
            except StoreUnavailable as error:
                self._away = True
                self._log.warning(events.REPORTS_WAIT, count=len(reports), error=str(error))
                for report in reports:
                    if isinstance(report, FINAL):
                        self._keep(report)
            await asyncio.sleep(grown_s(RETRY_FIRST_S, tries, RETRY_MAX_S))
            tries += 1

    def _answered(self, report: Report, answer: Answer) -> None:
        if isinstance(report, FINAL):
            self._forget(report)
        if isinstance(answer, Refused):
            self._log.warning(
                events.REFUSED,
                job_id=report.job_id,
                fencing_token=report.token,
                reason=answer.reason.value,
            )

    def _forget(self, report: Completed | Failed) -> None:
        try:
            self._spool.forget(report)
        except OSError as error:
            self._log.error("report stays on disk", job_id=report.job_id, error=str(error))

    def _keep(self, report: Completed | Failed) -> None:
        try:
            self._spool.keep(report)
        except OSError as error:
            self._log.error("report is kept in memory only", job_id=report.job_id, error=str(error))
