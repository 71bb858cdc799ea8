"""The end of an output of any length, in bounded memory; and text that can be written anywhere."""

from __future__ import annotations

from collections import deque
from typing import Final

TAIL_BYTES: Final = 64 * 1024
"""As much as a report may carry (queue.reports.LOG_CHARS_MAX)."""


def plain(text: str) -> str:
    """A file name that is no UTF-8 holds halves of characters, which no report can carry."""
    return text.encode(errors="backslashreplace").decode()


class Tail:
    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._cut = False

    def add(self, data: bytes) -> None:
        if not data:
            return  # to let go of it later would look like a cut
        self._chunks.append(data)
        self._size += len(data)
        while self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())
            self._cut = True

    def text(self) -> str:
        data = b"".join(self._chunks)
        cut = self._cut or len(data) > self._limit
        text = data[-self._limit :].decode(errors="replace")
        return f"[…]\n{text}" if cut else text
