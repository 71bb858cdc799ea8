"""Whether one order explains what concurrent clients were told.

A history is linearizable if every operation can be given a moment between its beginning and its end
such that, one after the other in the order of these moments, they give the answers that were given.
The search is that of Wing and Gong with Lowe's memory of configurations, as in Porcupine: take one
of the operations that may come next, undo it when that leads nowhere, and never enter the same set
of operations with the same state twice. An operation whose end nobody knows ends after all others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Generic, TypeVar
from zlib import crc32

State = TypeVar("State", bound=Hashable)

# Ten seconds on a slow machine; counted, so that a seed ends the same way on every machine.
STEPS_MAX = 3_000_000


@dataclass(frozen=True, slots=True)
class Operation:
    name: str
    began: float
    ended: float  # inf: no answer came
    asked: Any
    told: Any = None


@dataclass(frozen=True, slots=True)
class Model(Generic[State]):
    """`step` gives the state after an operation, or None if its answer contradicts the state."""

    first: State
    step: Callable[[State, Operation], State | None]


class Undecided(Exception):
    """The search took too long."""


@dataclass(frozen=True, slots=True)
class Explanation:
    order: list[Operation]  # the longest that was found
    stuck: Operation | None  # which ended, and has no place; None: everything has

    @property
    def found(self) -> bool:
        return self.stuck is None


class _Event:
    """The beginning of an operation, or its end, in a list from which pairs can be taken out."""

    __slots__ = ("after", "before", "end", "number")

    def __init__(self, number: int, end: _Event | None = None) -> None:
        self.number = number
        self.end = end
        self.before: _Event
        self.after: _Event | None = None

    def link(self, before: _Event) -> None:
        self.before, self.after = before, before.after
        if before.after is not None:
            before.after.before = self
        before.after = self

    def take_out(self) -> None:
        self.before.after = self.after
        if self.after is not None:
            self.after.before = self.before

    def put_back(self) -> None:
        self.before.after = self
        if self.after is not None:
            self.after.before = self


def explain(
    operations: Sequence[Operation], model: Model[State], steps_max: int = STEPS_MAX
) -> Explanation:
    """Raises Undecided."""
    head = _events(operations)
    state, done = model.first, 0
    seen: set[tuple[int, State]] = set()
    taken: list[tuple[_Event, State]] = []
    longest: list[int] = []
    stuck: Operation | None = None
    at, steps = head.after, 0
    while head.after is not None:
        steps += 1
        if steps > steps_max:
            raise Undecided(f"{len(operations)} operations, {steps_max} steps")
        if at is not None and (end := at.end) is not None:
            after = model.step(state, operations[at.number])
            entered = (done | 1 << at.number, after)
            if after is None or entered in seen:
                at = at.after
                continue
            seen.add((entered[0], after))
            taken.append((at, state))
            done, state = entered[0], after
            at.take_out()
            end.take_out()
            at = head.after
            continue
        if stuck is None or len(taken) > len(longest):
            longest = [event.number for event, _ in taken]
            stuck = operations[at.number] if at is not None else None
        if not taken:
            return Explanation([operations[number] for number in longest], stuck)
        event, state = taken.pop()
        assert event.end is not None
        done ^= 1 << event.number
        event.end.put_back()
        event.put_back()
        at = event.after
    return Explanation([operations[event.number] for event, _ in taken], None)


def _events(operations: Sequence[Operation]) -> _Event:
    """What begins at the moment at which another ends is concurrent with it."""
    found: list[tuple[float, bool, _Event]] = []
    for number, one in enumerate(operations):
        end = _Event(number)
        found.append((one.began, False, _Event(number, end)))
        found.append((one.ended, True, end))
    found.sort(key=lambda one: one[:2])
    head = last = _Event(-1)
    for _, _, event in found:
        event.link(last)
        last = event
    return head


# -- a replicated log ------------------------------------------------------------------------------

Log = tuple[int, int]  # how long it is, and a hash over it


def log_of(requests: Sequence[str]) -> Log:
    log: Log = (0, 0)
    for request in requests:
        log = _longer(log, request)
    return log


def _longer(log: Log, request: str) -> Log:
    return log[0] + 1, crc32(request.encode(), log[1])


def _log_step(log: Log, one: Operation) -> Log | None:
    if one.asked is None:
        return log if one.told == log else None
    return _longer(log, one.asked) if one.told == log[0] + 1 else None


LOG = Model((0, 0), _log_step)
"""`asked` is a request to append, or None to read; `told` the op of the request, or the log that
was read."""


def log_history(operations: Sequence[Operation], longest_read: Sequence[str]) -> list[Operation]:
    """Operations of which the answer is unknown get the only place they can have, or none.

    A read without an answer says nothing. Requests are unique, so what was ever read says where
    they are. Behind that nobody tells them apart: of those that nobody was told of, the first that
    began takes the first place of which nobody was told."""
    read_at = {request: op for op, request in enumerate(longest_read, 1)}
    known = [one for one in operations if one.ended < inf]
    told = {one.told for one in known if one.asked is not None}
    unread = range(len(longest_read) + 1, max(told, default=0) + 1)
    places = iter([op for op in unread if op not in told])
    for one in sorted(operations, key=lambda one: one.began):
        if one.ended == inf and one.asked is not None:
            op = read_at.get(one.asked) or next(places, None)
            if op is not None:
                known.append(replace(one, told=op))
    return known
