"""Numbers that merge in any order, any number of times, and come out the same.

A slot has one writer for its whole life: it is keyed by datacenter *and* the incarnation of the
manager that writes it, because a slot that restarted at zero would be hidden by its former value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar


class Slot(NamedTuple):
    datacenter: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class GCounter:
    """Grows only. Merging takes the larger value of each slot."""

    slots: Mapping[Slot, int] = field(default_factory=dict)

    @property
    def value(self) -> int:
        return sum(self.slots.values())

    def add(self, slot: Slot, amount: int = 1) -> GCounter:
        if amount < 0:
            raise ValueError(f"a growing counter cannot change by {amount}")
        return GCounter({**self.slots, slot: self.slots.get(slot, 0) + amount})

    def merge(self, other: GCounter) -> GCounter:
        merged = dict(self.slots)
        for slot, count in other.slots.items():
            merged[slot] = max(count, merged.get(slot, 0))
        return GCounter(merged)

    def in_datacenter(self, datacenter: str) -> int:
        return sum(count for slot, count in self.slots.items() if slot.datacenter == datacenter)


Value = TypeVar("Value", int, float, str)


@dataclass(frozen=True, slots=True)
class LWWRegister(Generic[Value]):
    """The latest write wins: by Lamport time, then writer; of one writer's two writes at one
    time (it broke the rule) the larger value, so that all still agree."""

    value: Value
    time: int
    writer: str

    def merge(self, other: LWWRegister[Value]) -> LWWRegister[Value]:
        mine = (self.time, self.writer, self.value)
        theirs = (other.time, other.writer, other.value)
        return other if theirs > mine else self


@dataclass(frozen=True, slots=True)
class JobCounters:
    """A job's statistics over datacenters; gates may merge any subset, in any order."""

    completed: GCounter = field(default_factory=GCounter)
    failed: GCounter = field(default_factory=GCounter)
    rates: Mapping[str, LWWRegister[float]] = field(default_factory=dict)

    def merge(self, other: JobCounters) -> JobCounters:
        rates = dict(self.rates)
        for datacenter, register in other.rates.items():
            mine = rates.get(datacenter)
            rates[datacenter] = register if mine is None else mine.merge(register)
        return JobCounters(
            self.completed.merge(other.completed), self.failed.merge(other.failed), rates
        )

    @property
    def rate(self) -> float:
        return sum(self.rates[datacenter].value for datacenter in sorted(self.rates))
