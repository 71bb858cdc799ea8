"""Cuts a damaged log at the damage, on a person's order, and keeps what is cut away.

What follows damage is not put back: a state built from a history with a hole in it is wrong in ways
nobody can see. The log ends before the damage; the damaged file and those after it stay beside it
under another name. LSNs go on behind every number that they may hold. A mark stays until the owner
of the log has taken note that it may have forgotten what it told others.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.ledger.wal.inspection import Inspected, inspect
from hyperscale.ledger.wal.record import HEADER_BYTES as RECORD_BYTES
from hyperscale.ledger.wal.recovery import Decision
from hyperscale.ledger.wal.segment import (
    HEADER_BYTES,
    Header,
    create,
    decode_header,
    first_header,
    join,
)
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.runtime.host import Clock, Disk

DAMAGED_SUFFIX = ".damaged"
REPAIRED_MARK = "repaired"


@dataclass(frozen=True, slots=True)
class Repaired:
    last_lsn: int
    """What is left ends here."""
    next_lsn: int
    put_aside: tuple[str, ...]
    """Files that hold what was cut away."""


async def repair(
    disk: Disk, clock: Clock, directory: str, settings: WalSettings | None = None
) -> Repaired | None:
    """None when nothing is damaged. Can be run again after a crash in the middle of it."""
    settings = settings or WalSettings()
    segments = (await inspect(disk, directory, settings)).segments
    bad = [seen.case.decision is Decision.REFUSE for seen in segments]
    if not any(bad):
        return None
    await (await disk.open(join(directory, REPAIRED_MARK))).close()
    await disk.sync_directory(directory)
    first = bad.index(True)
    kept, damaged, later = segments[:first], segments[first], segments[first + 1 :]
    aside = [damaged.path + DAMAGED_SUFFIX, *(seen.path + DAMAGED_SUFFIX for seen in later)]
    await _copy(disk, damaged.path, aside[0], settings.read_bytes)
    await disk.sync_directory(directory)
    for seen in reversed(later):  # what is left in place is whole at every moment
        await disk.rename(seen.path, seen.path + DAMAGED_SUFFIX)
        await disk.sync_directory(directory)
    next_lsn = await _beyond_everything(disk, directory) + 1
    if damaged.scanner is None:
        await disk.remove(damaged.path)
        await disk.sync_directory(directory)
    else:
        kept = [*kept, damaged]
    header = _takes_over(kept, next_lsn, int(clock.wall() * 1e6))
    await (await create(disk, directory, header, b"")).close()
    return Repaired(kept[-1].last_lsn if kept else 0, next_lsn, tuple(aside))


def _takes_over(kept: list[Inspected], next_lsn: int, stamp_us: int) -> Header:
    """The next start removes what stands behind the end that this gives its predecessor."""
    if not kept:  # a checkpoint, or nothing, is all that is left of what was before
        return first_header(next_lsn, stamp_us)._replace(previous_last_lsn=0)
    last, scanner = kept[-1], kept[-1].scanner
    assert last.header is not None
    assert scanner is not None
    return Header(
        number=last.header.number + 1,
        carried_bytes=0,
        cut_bytes=last.size - scanner.at,
        previous_crc=scanner.before_crc if scanner.closed else scanner.last_crc,
        first_lsn=next_lsn,
        resume_lsn=next_lsn,
        previous_last_lsn=last.last_lsn,
        previous_end=scanner.batch_at if scanner.closed else scanner.at,
        stamp_us=stamp_us,
    )


async def _beyond_everything(disk: Disk, directory: str) -> int:
    """An LSN that no record in any file here can exceed: none is shorter than its header."""
    bound = 0
    for name in await disk.list(directory):
        path = join(directory, name)
        header = decode_header(await disk.read(path, 0, HEADER_BYTES))
        start = max(bound, header.resume_lsn if header else bound)
        bound = start + await disk.size(path) // RECORD_BYTES
    return bound


async def _copy(disk: Disk, source: str, target: str, bite_bytes: int) -> None:
    directory, _, name = target.rpartition("/")
    if name in await disk.list(directory):
        return  # put aside by an earlier repair, before it was interrupted
    file = await disk.open(target + ".new")
    try:
        offset = 0
        while data := await disk.read(source, offset, bite_bytes):
            await file.append(data)
            offset += len(data)
        await file.sync()
    finally:
        await file.close()
    await disk.rename(target + ".new", target)
