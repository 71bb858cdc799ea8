"""Callers who come while a batch is under way form the next batch, so many callers share a trip.
One of the waiting leads each batch; when it is through it hands the lead on. For databases that are
asked over a wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from hyperscale.scheduler.errors import StoreUnavailable

S = TypeVar("S")


class Fault(NamedTuple):
    """A step raised what it never should; told apart from a value it returned."""

    error: Exception


class _Waiting(NamedTuple):
    steps: Sequence[Any]
    done: asyncio.Future[list[Any] | None]
    """None: take the lead."""


class GroupCommit(Generic[S]):
    def __init__(self, commit: Callable[[list[S]], Awaitable[list[Any]]], steps_max: int) -> None:
        """`commit` answers with each step's outcome, refusal or Fault in its place."""
        self._commit = commit
        self._steps_max = steps_max
        self._queue: list[_Waiting] = []
        self._led = False

    async def run(self, steps: Sequence[S]) -> list[Any]:
        mine = _Waiting(steps, asyncio.get_running_loop().create_future())
        self._queue.append(mine)
        if self._led:
            try:
                outcomes = await mine.done
            except asyncio.CancelledError:
                self._leave(mine)
                raise
            if outcomes is not None:
                return _sound(outcomes)
        self._led = True
        try:
            return _sound(await self._lead(mine))
        finally:
            self._hand_on()

    def _leave(self, mine: _Waiting) -> None:
        if mine in self._queue:
            self._queue.remove(mine)
        told = mine.done.done() and not mine.done.cancelled() and mine.done.exception() is None
        if told and mine.done.result() is None:
            self._hand_on()

    def _hand_on(self) -> None:
        self._led = False
        for waiting in self._queue:
            if not waiting.done.done():
                self._led = True
                waiting.done.set_result(None)
                return

    async def _lead(self, mine: _Waiting) -> list[Any]:
        """`mine` is the first in the queue, or all before it have gone."""
        batch: list[_Waiting] = []
        count = 0
        while self._queue and (count < self._steps_max or mine not in batch):
            batch.append(self._queue.pop(0))
            count += len(batch[-1].steps)
        steps = [step for waiting in batch for step in waiting.steps]
        try:
            outcomes = await self._all(steps)
        except BaseException as error:
            for waiting in batch:
                if waiting is not mine and not waiting.done.done():
                    waiting.done.set_exception(_told(error))
            raise
        mine_outcomes: list[Any] = []
        for waiting in batch:
            share, outcomes = outcomes[: len(waiting.steps)], outcomes[len(waiting.steps) :]
            if waiting is mine:
                mine_outcomes = share
            elif not waiting.done.done():
                waiting.done.set_result(share)
        return mine_outcomes

    async def _all(self, steps: list[S]) -> list[Any]:
        outcomes: list[Any] = []
        for start in range(0, len(steps), self._steps_max):
            outcomes += await self._commit(steps[start : start + self._steps_max])
        return outcomes


def _told(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    return StoreUnavailable("whoever led the write was stopped", "try again")


def _sound(outcomes: list[Any]) -> list[Any]:
    for outcome in outcomes:
        if isinstance(outcome, Fault):
            raise outcome.error
    return outcomes
