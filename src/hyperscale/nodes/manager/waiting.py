"""Who waits for something to be held by a quorum. Those that have hung up are forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Waiting(Generic[K, V]):
    def __init__(self) -> None:
        self._waiting: dict[K, list[asyncio.Future[V]]] = {}

    def add(self, key: K) -> asyncio.Future[V]:
        future: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        there = [one for one in self._waiting.get(key, ()) if not one.done()]
        self._waiting[key] = [*there, future]
        return future

    def tell(self, key: K, answer: V | Exception) -> None:
        """To all that wait for it: what came of it, or the error to be raised there."""
        for future in self._waiting.pop(key, ()):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def tell_all(self, answer: V | Exception) -> None:
        for key in list(self._waiting):
            self.tell(key, answer)
