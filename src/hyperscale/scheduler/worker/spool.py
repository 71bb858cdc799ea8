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

from hyperscale.runtime.private_files import private_directory
from hyperscale.scheduler.model.reports import Completed, Failed

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
