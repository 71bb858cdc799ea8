"""The one thing a voter must never forget, on disk: its term and whom it voted for in it.

The file is replaced as a whole: written beside, synced, renamed over, directory synced. A power cut
at any point leaves the old content or the new. A checksum tells rot from truth.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from hyperscale.cluster.election import Durable
from hyperscale.errors import RunFailed
from hyperscale.runtime.host import Disk

_CRC_BYTES = 4


class _Record(msgspec.Struct, frozen=True, tag="term/1"):
    term: int
    voted_for: str | None


class TermFileDamaged(RunFailed):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is damaged, so this node cannot know whether it has voted already",
            "restore the file, or replace the node by one with a new id",
        )


def encode(durable: Durable) -> bytes:
    content = msgspec.msgpack.encode(_Record(durable.term, durable.voted_for))
    return crc32(content).to_bytes(_CRC_BYTES, "big") + content


class TermFile:
    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/term"
        self._beside = f"{directory}/term.new"

    async def load(self) -> Durable:
        """What was saved last; nothing yet for a node that never voted.

        What can be read need not be durable: the process before may have died between renaming
        and syncing, with the new content in the page cache only. So it is saved once more."""
        await self._make_directories()
        durable = await self._read()
        if durable is None:
            return Durable()
        await self.save(durable)
        return durable

    async def save(self, durable: Durable) -> None:
        """Return when it is on stable storage. After an OSError nobody knows what is there, so
        the caller must never speak for this voter again."""
        file = await self._disk.open(self._beside)
        try:
            await file.truncate(0)
            await file.append_and_sync(encode(durable))
        finally:
            await file.close()
        await self._disk.rename(self._beside, self._path)
        await self._disk.sync_directory(self._directory)

    async def _read(self) -> Durable | None:
        if "term" not in await self._disk.list(self._directory):
            return None
        data = await self._disk.read(self._path)
        checksum, content = data[:_CRC_BYTES], data[_CRC_BYTES:]
        if len(data) <= _CRC_BYTES or int.from_bytes(checksum, "big") != crc32(content):
            raise TermFileDamaged(self._path)
        try:
            record = msgspec.msgpack.decode(content, type=_Record)
        except msgspec.MsgspecError as error:
            raise TermFileDamaged(self._path) from error
        return Durable(record.term, record.voted_for)

    async def _make_directories(self) -> None:
        await self._disk.make_directory(self._directory)
        parts = self._directory.split("/")
        for depth in range(len(parts)):
            await self._disk.sync_directory("/".join(parts[:depth]) or ".")
