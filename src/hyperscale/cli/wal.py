"""`hyperscale wal`: look into a write-ahead log, and cut a damaged one on purpose.

`verify` and `dump` change nothing and may look at the log of a running node, whose last batch then
may look torn because it is being written. `repair` is for a stopped node.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperscale.cli import flags, streams
from hyperscale.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from hyperscale.ledger.wal.inspection import Deliver, Inspected, Inspection
    from hyperscale.ledger.wal.record import Record
    from hyperscale.ledger.wal.repair import Repaired

LIMIT_DEFAULT = "100"
PREVIEW_BYTES = 60


def wal(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="verify, dump or repair")],
    directory: Annotated[str, typer.Argument(metavar="DIR", help="where its segment files are")],
    first: Annotated[
        str, typer.Option("--from", metavar="LSN", help="dump: first record (the oldest)")
    ] = "0",
    limit: Annotated[
        str, typer.Option("--limit", metavar="N", help="dump: how many records, 0 for all (100)")
    ] = LIMIT_DEFAULT,
    yes: Annotated[
        bool, typer.Option("--yes", help="repair: do it; otherwise only say what would be lost")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="verify, dump: print JSON")] = False,
    debug: flags.Debug = False,
) -> int:
    """Check, print or cut a write-ahead log."""
    from_lsn, count = _number("--from", first), _number("--limit", limit)
    if action not in ("verify", "dump", "repair"):
        raise BadInput(f"there is no action {action!r}", "there are: verify, dump, repair")
    if not Path(directory).is_dir():
        raise BadInput(f"{directory} is not a directory", "name the one that holds segment_*.wal")
    if action == "dump":
        return _dump(directory, from_lsn, count, json)
    return _verify(directory, json) if action == "verify" else _repair(directory, yes)


def _verify(directory: str, json: bool) -> int:
    found = _inspect(directory)
    damage = found.damage()
    if json:
        streams.say(_pretty(_as_data(found)))
    else:
        streams.say("\n".join(map(_row, found.segments)) or "no segments: the log is empty")
        streams.say(f"\n{_verdict(found)}")
    return int(ExitCode.FAILED if damage is not None else ExitCode.PASSED)


def _dump(directory: str, from_lsn: int, count: int, json: bool) -> int:
    shown = 0

    def deliver(records: Sequence[Record]) -> None:
        nonlocal shown
        for record in records:
            if record.lsn >= from_lsn and (not count or shown < count):
                shown += 1
                streams.say(_json_line(record) if json else _line(record))

    found = _inspect(directory, deliver)
    if found.damage() is not None:
        streams.note(_verdict(found))
        return int(ExitCode.FAILED)
    return int(ExitCode.PASSED)


def _repair(directory: str, yes: bool) -> int:
    damage = _inspect(directory).damage()
    if damage is None:
        streams.say("nothing is damaged; nothing was changed")
        return int(ExitCode.PASSED)
    streams.say(f"{damage.message}; everything after it would be cut off")
    if not yes:
        streams.say("nothing was changed: stop the node, then run it again with --yes")
        return int(ExitCode.FAILED)
    import asyncio

    from hyperscale.runtime.directory_lock import check_free

    check_free(Path(directory))
    done = asyncio.run(_cut(directory))
    assert done is not None
    streams.say(
        f"cut: the log ends with LSN {done.last_lsn} and goes on with {done.next_lsn}; put aside:"
    )
    streams.say("\n".join(f"  {path}" for path in done.put_aside))
    return int(ExitCode.PASSED)


def _inspect(directory: str, deliver: Deliver | None = None) -> Inspection:
    from hyperscale.ledger.wal.inspection import inspect
    from hyperscale.ledger.wal.settings import WalSettings
    from hyperscale.runtime.real import RealHost

    async def work() -> Inspection:
        async with RealHost("wal", directory) as host:
            return await inspect(host.disk, "", WalSettings(), 0, deliver)

    import asyncio

    try:
        return asyncio.run(work())
    except OSError as error:
        raise BadInput(f"{directory} cannot be read: {error}") from error


async def _cut(directory: str) -> Repaired | None:
    from hyperscale.ledger.wal.repair import repair
    from hyperscale.runtime.real import RealHost

    async with RealHost("wal", directory) as host:
        return await repair(host.disk, host.clock, "")


def _row(seen: Inspected) -> str:
    cut_bytes = seen.header.cut_bytes if seen.header else 0
    cut = f"; {cut_bytes:,} unreadable bytes before it were cut" if cut_bytes else ""
    return (
        f"{seen.path}  {seen.size:>12,} B  {seen.records:>9,} records up to LSN"
        f" {seen.last_lsn:<10}  {seen.case.decision.value}{cut}"
    )


def _verdict(found: Inspection) -> str:
    from hyperscale.ledger.wal.recovery import Decision

    damage = found.damage()
    if damage is not None:
        return f"damaged: {damage.message}\n{damage.hint}"
    if not found.segments:
        return "nothing to verify"
    torn = found.segments[-1].case.decision is Decision.CUT
    end = "its torn end is cut off at the next start" if torn else "nothing is wrong"
    return f"good: {found.records:,} records up to LSN {found.segments[-1].last_lsn}, {end}"


def _as_data(found: Inspection) -> dict[str, object]:
    damage = found.damage()
    return {
        "good": damage is None,
        "records": found.records,
        "segments": [
            {
                "file": seen.path,
                "bytes": seen.size,
                "records": seen.records,
                "last_lsn": seen.last_lsn,
                "case": seen.case.label,
                "decision": seen.case.decision.name.lower(),
            }
            for seen in found.segments
        ],
        "damage": damage
        and {
            "file": damage.path,
            "offset": damage.offset,
            "what": damage.what,
            "last_good_lsn": damage.last_good_lsn,
        },
    }


def _line(record: Record) -> str:
    when = datetime.fromtimestamp(record.stamp_us / 1e6, UTC).isoformat(timespec="milliseconds")
    preview = repr(record.payload[:PREVIEW_BYTES])[2:-1]
    more = "…" if len(record.payload) > PREVIEW_BYTES else ""
    size = len(record.payload)
    return f"{record.lsn:>10}  {when}  kind {record.kind:<3}  {size:>8,} B  {preview}{more}"


def _json_line(record: Record) -> str:
    import msgspec

    from hyperscale.ui.text import harmless_json

    return harmless_json(msgspec.json.encode(record._asdict()).decode())


def _pretty(data: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(data)).decode()


def _number(option: str, text: str) -> int:
    if not text.isdecimal():
        raise BadInput(f"{option} takes a whole number, not {text!r}")
    return int(text)
