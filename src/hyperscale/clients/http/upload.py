"""Bodies that are read while they are sent: files, generators, long multipart forms.

An `Upload` gives the pieces of one request, framed: with their sizes as chunks and the last chunk
behind them, or bare when the length is known and stands in the head. Reading never keeps the other
virtual users waiting for long: after `PIECE_BYTES` they have their turn.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from contextvars import copy_context
from typing import Any

from hyperscale.clients.http.compression import compressor_for
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import File, content_type_of
from hyperscale.workload.encoding import encode_body

MIB = 1024 * 1024
PIECE_BYTES = MIB // 4  # a tenth of a millisecond to read and to write
# What is put together for each call is sent in one go up to here; above, pieces cost less than the
# copy that makes them one (16 MiB: 5 ms of processor time in pieces, 9 ms as one).
WHOLE_BYTES_MAX = MIB
# A file of its own is encoded once, and sending it from memory costs half of reading it again
# (16 MiB: 2.7 ms, read in pieces 5 ms). Above, twice its size in every process weighs more.
KEPT_FILE_BYTES_MAX = 16 * MIB
_PIECE_COST_BYTES = 4 * 1024  # what making and framing a piece takes, however short it is

Pieces = Callable[[], AsyncGenerator[bytes, None]]


class Upload:
    """Call it for the pieces to write. `repeatable`: it can be called again, for the same ones.

    `context` is the author's, in which a generator of theirs runs: calls it makes count for the
    step that made this one.
    """

    __slots__ = ("_pieces", "chunked", "context", "length", "repeatable")

    def __init__(
        self, pieces: Pieces, length: int | None, repeatable: bool = True, chunked: bool = False
    ) -> None:
        self._pieces = pieces
        self.length = length  # None: not known before the end
        self.repeatable = repeatable
        self.chunked = chunked or length is None
        self.context = copy_context()

    def in_chunks(self) -> Upload:
        return Upload(self._pieces, self.length, self.repeatable, True)

    def compressed(self, coding: str) -> Upload:
        async def pieces() -> AsyncGenerator[bytes, None]:
            compressor = compressor_for(coding)
            async with aclosing(self.pieces()) as read:
                async for piece in read:
                    yield compressor.add(piece)
            yield compressor.end()

        return Upload(pieces, None, self.repeatable)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Without framing and without empty ones, which would end a chunked body."""
        left = self.length
        async with aclosing(self._pieces()) as read:
            async for piece in read:
                if piece:
                    if left is not None:
                        left -= len(piece)
                    yield piece
        if left:
            raise BadInput(f"a file became {left} bytes shorter while it was sent")

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self.pieces()) as read:
            async for piece in read:
                yield b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked else piece
        if self.chunked:
            yield b"0\r\n\r\n"


def upload_of(value: Any) -> tuple[bytes | Upload, str] | None:
    """The body that a file object, iterator or async iterator gives; None for other values."""
    if hasattr(value, "__aiter__"):
        return _of_async(value), "application/octet-stream"
    if hasattr(value, "read"):
        return of_file_object(value, "data"), content_type_of(name_of(value) or "")
    if isinstance(value, Iterator):
        return _of_iterator(value), "application/octet-stream"
    return None


def of_file(file: File, kept: bool = True) -> bytes | Upload:
    """A short file is read once, for all requests; a long one from the disk, each time.

    `kept`: the argument is used again. Else more than a short file would be read whole each time.
    """
    size = file.size()
    if size <= (KEPT_FILE_BYTES_MAX if kept else WHOLE_BYTES_MAX):
        return file.body()[0]

    def pieces() -> Iterator[bytes]:
        with file.open() as opened:
            left = size
            while left and (piece := opened.read(min(PIECE_BYTES, left))):
                left -= len(piece)
                yield piece

    return Upload(lambda: _in_turns(pieces()), size)


def of_file_object(value: Any, argument: str) -> bytes | Upload:
    """From where it stands. Where it can be positioned it stands there again afterwards, so that
    the next call sends the same; other ones are used up."""
    opened = getattr(value, "file", value)  # what a named temporary file wraps
    try:
        if isinstance(opened.read(0), str):
            raise BadInput(f"{argument} is a file opened as text", "open it with mode 'rb'")
        if not isinstance(opened, _POSITIONABLE) or not opened.seekable():
            return _of_reader(opened)
        start = opened.tell()
        length = max(0, opened.seek(0, os.SEEK_END) - start)
        opened.seek(start)
        if length <= WHOLE_BYTES_MAX:
            return _read_at(opened, start, length)
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{argument} is a file that cannot be read: {error}") from error
    positioned = opened

    def pieces() -> Iterator[bytes]:
        for at in range(start, start + length, PIECE_BYTES):
            yield _read_at(positioned, at, min(PIECE_BYTES, start + length - at))

    return Upload(lambda: _in_turns(pieces()), length)


def name_of(value: Any) -> str | None:
    """Of the file that a file object reads, when it has one."""
    name = getattr(value, "name", None)
    return os.path.basename(name) if isinstance(name, str) else None


def joined(parts: Sequence[bytes | Upload]) -> bytes | Upload:
    """One body of several, in memory when all of them are and it is short."""
    uploads = [part for part in parts if isinstance(part, Upload)]
    whole = [part for part in parts if isinstance(part, bytes)]
    length = sum(map(len, whole))
    if not uploads and length <= WHOLE_BYTES_MAX:
        return b"".join(whole)
    known: int | None = length
    for upload in uploads:
        known = None if known is None or upload.length is None else known + upload.length

    async def pieces() -> AsyncGenerator[bytes, None]:
        for part in parts:
            read = part.pieces() if isinstance(part, Upload) else _in_turns(_slices(part))
            async with aclosing(read) as each:
                async for piece in each:
                    yield piece

    return Upload(pieces, known, all(upload.repeatable for upload in uploads))


# Of these a position costs nothing. A compressed file would be read from its start each time.
_POSITIONABLE = (io.BytesIO, io.FileIO, io.BufferedReader, io.BufferedRandom)


def _read_at(opened: Any, position: int, length: int) -> bytes:
    before = opened.tell()
    opened.seek(position)
    try:
        content: bytes = opened.read(length)
        return content
    finally:
        opened.seek(before)


def _slices(content: bytes) -> Iterator[bytes]:
    for at in range(0, len(content), PIECE_BYTES):
        yield content[at : at + PIECE_BYTES]


def _of_reader(opened: Any) -> Upload:
    def pieces() -> Iterator[bytes]:
        while piece := opened.read(PIECE_BYTES):
            yield _bytes(piece)

    return Upload(lambda: _in_turns(pieces()), None, repeatable=False)


def _of_iterator(iterator: Iterator[Any]) -> Upload:
    _refuse_ended(getattr(iterator, "gi_frame", iterator))
    return Upload(lambda: _in_turns(map(_bytes, iterator)), None, repeatable=False)


def _of_async(source: Any) -> Upload:
    _refuse_ended(getattr(source, "ag_frame", source))

    async def pieces() -> AsyncGenerator[bytes, None]:
        turn = _Turn()
        async for piece in source:
            given = _bytes(piece)
            yield given
            if turn.is_over(given):  # it may never wait by itself
                await asyncio.sleep(0)

    return Upload(pieces, None, repeatable=aiter(source) is not source)


def _refuse_ended(frame: Any) -> None:
    if frame is None:
        raise BadInput("data is a generator that has ended", "make a new one for each call")


def _bytes(piece: Any) -> bytes:
    if isinstance(piece, bytes):
        return piece
    if isinstance(piece, str | bytearray | memoryview):
        return encode_body(piece)[0]
    raise BadInput(f"data gave a {type(piece).__name__}, but a streamed body is made of bytes")


async def _in_turns(pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
    turn = _Turn()
    for piece in pieces:
        yield piece
        if turn.is_over(piece):
            await asyncio.sleep(0)


class _Turn:
    """How much was read since the other virtual users had theirs."""

    __slots__ = ("_read",)

    def __init__(self) -> None:
        self._read = 0

    def is_over(self, piece: bytes) -> bool:
        self._read += len(piece) + _PIECE_COST_BYTES
        if self._read < PIECE_BYTES:
            return False
        self._read = 0
        return True
