"""What callers want written: a bounded queue in front of the writer, first come first served.

Accepted entries are bounded in number and bytes; beyond that callers stand in line outside and
are let in as the writer takes batches. A caller that gives up takes its entry along, whether in
line or accepted, unless the writer has it already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hyperscale.ledger.wal.record import HEADER_BYTES
from hyperscale.ledger.wal.settings import WalSettings


class QueuedWrite:
    """Payloads that go into one batch, and the future of the first one's LSN. Without payloads it
    is a barrier: done when everything before it is durable."""

    __slots__ = ("done", "kind", "level", "payloads", "size")

    def __init__(self, payloads: Sequence[bytes], kind: int, level: int) -> None:
        self.payloads = payloads
        self.kind = kind
        self.level = level
        self.size = sum(map(len, payloads)) + HEADER_BYTES * len(payloads)
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()


class Inbox:
    def __init__(self, settings: WalSettings) -> None:
        self._settings = settings
        self._accepted: dict[QueuedWrite, None] = {}
        self._outside: dict[QueuedWrite, None] = {}
        self._bytes = 0
        self._count = 0
        self._closing = False
        self._wakeup: asyncio.Future[None] | None = None

    @property
    def count(self) -> int:
        """Records accepted and not yet taken."""
        return self._count

    @property
    def bytes(self) -> int:
        return self._bytes

    def offer(self, entry: QueuedWrite) -> bool:
        """Accept if there is room and nobody stands in line."""
        if self._outside or not self._fits(entry):
            return False
        self._accept(entry)
        return True

    def put(self, entry: QueuedWrite) -> None:
        """Accept, or let it stand in line."""
        if not self.offer(entry):
            self._outside[entry] = None

    def withdraw(self, entry: QueuedWrite) -> None:
        """Forget an entry whose caller gave up; nothing happens when the writer has it."""
        if entry in self._accepted:
            del self._accepted[entry]
            self._leave(entry)
        elif entry in self._outside:
            del self._outside[entry]
        else:
            return
        self._let_in()

    def close(self) -> None:
        """No more will come; `wait` returns False once everything was taken."""
        self._closing = True
        self._wake()

    async def wait(self) -> bool:
        """Return True when there is something to take."""
        while not self._accepted:
            if self._closing:
                return False
            self._wakeup = asyncio.get_running_loop().create_future()
            await self._wakeup
        return True

    def batch_is_full(self) -> bool:
        settings = self._settings
        return self._count >= settings.batch_entries_max or self._bytes >= settings.batch_bytes_max

    def take(self) -> list[QueuedWrite]:
        """The next batch, as much as its limits allow and at least one entry."""
        settings, size, count = self._settings, 0, 0
        batch: list[QueuedWrite] = []
        bytes_max, entries_max = settings.batch_bytes_max, settings.batch_entries_max
        for entry in self._accepted:
            size += entry.size
            count += len(entry.payloads)
            if batch and (size > bytes_max or count > entries_max):
                break
            batch.append(entry)
        for entry in batch:
            del self._accepted[entry]
            self._leave(entry)
        self._let_in()
        return [entry for entry in batch if not entry.done.cancelled()]

    def empty(self) -> list[QueuedWrite]:
        """Everything, accepted or not; for telling them that it is over."""
        left = [*self._accepted, *self._outside]
        self._accepted.clear()
        self._outside.clear()
        self._bytes = self._count = 0
        return left

    def _fits(self, entry: QueuedWrite) -> bool:
        settings = self._settings
        return not self._accepted or (
            self._count + len(entry.payloads) <= settings.queue_entries_max
            and self._bytes + entry.size <= settings.queue_bytes_max
        )

    def _accept(self, entry: QueuedWrite) -> None:
        self._accepted[entry] = None
        self._bytes += entry.size
        self._count += len(entry.payloads)
        self._wake()

    def _leave(self, entry: QueuedWrite) -> None:
        self._bytes -= entry.size
        self._count -= len(entry.payloads)

    def _let_in(self) -> None:
        while self._outside:
            entry = next(iter(self._outside))
            if not self._fits(entry):
                return
            del self._outside[entry]
            self._accept(entry)

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)
