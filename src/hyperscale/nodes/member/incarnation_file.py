"""The incarnation limit of a node, on disk.

Each write is a new file that replaces the old one whole: after any crash the disk holds either
the old limit or the new one. A damaged file reads as 0; the cluster then tells us how far we were.
"""

from __future__ import annotations

import struct
import zlib

from hyperscale.runtime.host import Disk

_RECORD = struct.Struct(">QI")


PATH = "incarnation"
_NEXT = "incarnation.new"


class IncarnationFile:
    """In the root of the node's directory: a directory of its own would have to be made durable
    in its parent first, or a power cut takes it along with what is in it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    async def read(self) -> int:
        try:
            data = await self._disk.read(PATH)
        except FileNotFoundError:
            return 0
        if len(data) != _RECORD.size:
            return 0
        limit, checksum = _RECORD.unpack(data)
        return int(limit) if zlib.crc32(data[:8]) == checksum else 0

    async def write(self, limit: int) -> None:
        """Return when the limit is durable; raises OSError, and may be tried again."""
        disk = self._disk
        if _NEXT in await disk.list("."):
            await disk.remove(_NEXT)
        file = await disk.open(_NEXT)
        try:
            body = struct.pack(">Q", limit)
            await file.append_and_sync(body + struct.pack(">I", zlib.crc32(body)))
        finally:
            await file.close()
        await disk.rename(_NEXT, PATH)
        await disk.sync_directory(".")
