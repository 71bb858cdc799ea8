"""One run, any number of readers: each is told everything once, and from then on what changes.

A reader that is too slow misses messages and is told everything again; nothing is kept for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

import msgspec

from hyperscale.ui.web.patches import Patch, Whole

READERS_MAX: Final = 32
BEHIND_MAX: Final = 3
# A line that says nothing, so that neither side believes the other gone.
PING_S: Final = 15.0
_RETRY: Final = b"retry: 1000\n\n"


class _Reader:
    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.behind = True  # needs to be told everything
        self.news = asyncio.Event()


class Hub:
    def __init__(self, on_reader: Callable[[], None] = lambda: None) -> None:
        """`on_reader` is called when somebody comes."""
        self._whole = Whole()
        self._readers: set[_Reader] = set()
        self._on_reader = on_reader
        self.told = False  # there is something to tell

    @property
    def readers(self) -> int:
        return len(self._readers)

    def publish(self, patch: Patch) -> None:
        if not patch:
            return
        self._whole.add(patch)
        self.told = True
        message = _message(patch) if self._readers else b""
        for reader in self._readers:
            if len(reader.messages) >= BEHIND_MAX:
                reader.messages.clear()
                reader.behind = True
            elif not reader.behind:
                reader.messages.append(message)
            reader.news.set()

    async def events(self) -> AsyncGenerator[bytes, None]:
        reader = _Reader()
        self._readers.add(reader)
        self._on_reader()
        try:
            yield _RETRY
            while True:
                reader.news.clear()  # before looking: what comes while a piece is sent wakes again
                if reader.behind and self.told:
                    reader.behind = False
                    yield _message(self._whole.patch())
                while reader.messages:
                    yield reader.messages.pop(0)
                try:
                    async with asyncio.timeout(PING_S):
                        await reader.news.wait()
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._readers.discard(reader)


def _message(patch: Patch) -> bytes:
    return b"data: " + msgspec.json.encode(patch) + b"\n\n"
