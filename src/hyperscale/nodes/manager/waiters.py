"""Futures by what they wait for. Those whose callers have hung up are forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Waiters(Generic[K, V]):
    def __init__(self) -> None:
        self._waiting: dict[K, list[asyncio.Future[V]]] = {}

    def add(self, key: K) -> asyncio.Future[V]:
        """One for each caller: one that is cancelled takes no other with it."""
        future: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        there = [one for one in self._waiting.get(key, ()) if not one.done()]
        self._waiting[key] = [*there, future]
        return future

    def resolve(self, key: K, value: V) -> None:
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_result(value)

    def fail(self, key: K, error: Exception) -> None:
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_exception(error)
                future.exception()  # it may be that nobody waits

    def resolve_all(self, value: V) -> None:
        for key in list(self._waiting):
            self.resolve(key, value)

    def fail_all(self, error: Exception) -> None:
        for key in list(self._waiting):
            self.fail(key, error)
