"""What comes from workers and from disks: packed numbers, states, segments of a log, bundles.

Checksums are made right before a segment is fed, so that what stands behind them is reached too.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import pack_into, unpack_from
from zlib import crc32

import msgspec

from hyperscale.engine import unpacking
from hyperscale.engine.source import (
    AttachedFiles,
    BundleSource,
    FileSource,
    decode_overrides,
    decode_source,
    encode_source,
)
from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.ledger.wal import WriteAheadLog, record, segment
from hyperscale.ledger.wal.inspection import inspect
from hyperscale.ledger.wal.settings import WalSettings
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta, StepDelta
from hyperscale.metrics.exported import DamagedState
from hyperscale.metrics.packed import Outlines, PackedDelta, pack
from hyperscale.runtime.real import RealHost

_packed = msgspec.msgpack.Decoder(PackedDelta)
STEPS = ("home", "cart")


def aggregate() -> WorkflowAggregate:
    return WorkflowAggregate("W", steps=STEPS, checks=["ok"])


WHOLE = aggregate()
OUTLINES = Outlines(WHOLE.check)


def feed_packed(data: bytes) -> None:
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, DamagedState):
        told = _packed.decode(data)
        OUTLINES.accept(told)
        whole = aggregate()
        whole.apply(0, OUTLINES.add_up([told, told], 1, 1), 1.0)
        whole.freeze(buckets=True)


def some_deltas() -> Iterator[Delta]:
    for seq in (1, 2):
        yield Delta(seq=seq, vus=3, steps=[StepDelta(name, 28 + seq, 1) for name in STEPS])


def packed() -> Iterator[bytes]:
    return (msgspec.msgpack.encode(pack(delta)) for delta in some_deltas())


def feed_state(data: bytes) -> None:
    whole = aggregate()
    with suppress(DamagedState):
        whole.absorb(data)
        whole.freeze(buckets=True)
        whole.export()


def states() -> Iterator[bytes]:
    whole = aggregate()
    yield whole.export()
    for delta in some_deltas():
        whole.apply(0, delta, float(delta.seq))
        yield whole.export()


# -- segments --------------------------------------------------------------------------------------

SETTINGS = WalSettings()
_LOOP = asyncio.new_event_loop()


def feed_wal(data: bytes) -> None:
    for content in (data, with_checksums(data)):
        segment.decode_header(content)
        record.later_batch(content, 0, 0)
        folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        try:
            (folder / segment.name_of(1)).write_bytes(content)
            _LOOP.run_until_complete(_opened(folder))
        finally:
            shutil.rmtree(folder)


async def _opened(folder: Path) -> None:
    async with RealHost("fuzz", str(folder)) as host:
        with suppress(HyperscaleError):
            (await inspect(host.disk, "", SETTINGS)).damage()
            log = await WriteAheadLog.open(host, "")
            await log.append(b"x")
            await log.close()


def with_checksums(data: bytes) -> bytes:
    """The same with a header and records whose checksums are right, wherever they end."""
    made = bytearray(data.ljust(segment.HEADER_BYTES, b"\0"))
    made[: len(segment.MAGIC)] = segment.MAGIC
    seed = crc32(made[12 : segment.HEADER_BYTES])
    pack_into("<I", made, 8, seed)
    at = segment.HEADER_BYTES
    while at + record.HEADER_BYTES <= len(made):
        (length,) = unpack_from("<I", made, at + record.COVERED_FROM)
        after = at + record.HEADER_BYTES + length
        if after > len(made):
            break
        made[at : at + 4] = record.MAGIC
        pack_into("<I", made, at + 4, crc32(made[at + record.COVERED_FROM : after], seed))
        at = after
    return bytes(made)


def segments() -> Iterator[bytes]:
    header = segment.first_header(1, 0)
    records = [record.Record(lsn, b"payload", 1) for lsn in (1, 2, 3)]
    yield segment.encode_header(header)
    yield segment.encode_header(header) + record.encode_batch(records, segment.seed_of(header))


# -- bundles ---------------------------------------------------------------------------------------


def feed_bundle(data: bytes) -> None:
    with suppress(msgspec.MsgspecError):
        decode_overrides(data)
    try:
        source = decode_source(data)
    except BadInput:
        return
    if isinstance(source, FileSource):
        return
    try:
        root = source.attached.unpack()
        beneath = [path.resolve() for path in root.rglob("*")]
        assert all(path.is_relative_to(root) for path in beneath)
    except BadInput:
        pass
    finally:
        unpacking.remove()


def bundles() -> Iterator[bytes]:
    files = {"test.py": b"import json", "data/users.csv": b"a,b"}
    yield encode_source(
        BundleSource(AttachedFiles(files, {"users.csv": "data/users.csv"}), "test.py")
    )
    yield encode_source(FileSource("test.py"))
    yield encode_source(BundleSource(AttachedFiles({"big": bytes(1 << 17)}), "big"))
