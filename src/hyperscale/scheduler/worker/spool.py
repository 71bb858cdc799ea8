"""Reports that were not accepted yet, one small file each, so that a finished job stays finished
when the store is away or this process dies (S-51).

A report carries the worker id and the token of its claim, so whoever finds it may send it. A file
that cannot be read is set aside, never in the way of the others.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from hyperscale.scheduler.model.reports import Completed, Failed

FILES_MAX: Final = 10_000
FinalReport = Completed | Failed

_encode = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(FinalReport).decode


class Spool:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._count = sum(1 for _ in directory.glob("*.json"))

    @property
    def full(self) -> bool:
        """No room for another report: no job should be started."""
        return self._count >= FILES_MAX

    def keep(self, report: FinalReport) -> None:
        path = self._path(report)
        if path.exists():
            return
        beside = path.with_suffix(".tmp")
        with beside.open("wb") as file:
            file.write(_encode(report))
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        self._count += 1

    def forget(self, report: FinalReport) -> None:
        path = self._path(report)
        if path.exists():
            path.unlink(missing_ok=True)
            self._count -= 1

    def left(self) -> list[FinalReport]:
        """Oldest first."""
        found: list[FinalReport] = []
        for path in sorted(self._directory.glob("*.json"), key=_age):
            try:
                found.append(_decode(path.read_bytes()))
            except msgspec.DecodeError:
                path.rename(path.with_suffix(".unreadable"))
                self._count -= 1
            except FileNotFoundError:
                continue
        return found

    def _path(self, report: FinalReport) -> Path:
        safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in report.job_id)
        return self._directory / f"{safe[:100]}-{report.token}.json"


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
