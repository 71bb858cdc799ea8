"""Which core works for whom (B-32): two maps that always agree, and how many are free (D-53).

Cores are the admission control of a worker: a part gets all it asks for or nothing. What is free
can be read at any moment and never waits for anybody.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

Owner = TypeVar("Owner")


class Availability(NamedTuple):
    """Over the life of this worker: cores given out, cores that came back, cores free now."""

    assigned: int
    completed: int
    available: int


class Cores(Generic[Owner]):
    def __init__(self, total: int) -> None:
        if total < 1:
            raise ValueError("a worker has at least one core")
        self._owners: list[Owner | None] = [None] * total
        self._held: dict[Owner, tuple[int, ...]] = {}
        self._assigned = 0
        self._completed = 0

    @property
    def total(self) -> int:
        return len(self._owners)

    @property
    def free(self) -> int:
        return self.total - max(self._assigned - self._completed, 0)

    @property
    def availability(self) -> Availability:
        return Availability(self._assigned, self._completed, self.free)

    def owners(self) -> list[Owner]:
        return list(self._held)

    def held_by(self, owner: Owner) -> tuple[int, ...]:
        return self._held.get(owner, ())

    def allocate(self, owner: Owner, count: int) -> tuple[int, ...] | None:
        """The first free cores in order of their numbers; None, and nothing is taken, when there
        are too few."""
        if owner in self._held:
            raise ValueError(f"{owner} holds cores already")
        if count < 1:
            raise ValueError("a part takes at least one core")
        free = [number for number, holder in enumerate(self._owners) if holder is None]
        if len(free) < count:
            return None
        taken = tuple(free[:count])
        for number in taken:
            self._owners[number] = owner
        self._held[owner] = taken
        self._assigned += count
        return taken

    def release(self, owner: Owner, keep: int = 0) -> tuple[int, ...]:
        """The cores that are free again, all but `keep`; none when the owner holds no more than
        that, so that every way to an end may say it."""
        held = self._held.pop(owner, ())
        kept, returned = held[:keep], held[keep:]
        if kept:
            self._held[owner] = kept
        for number in returned:
            self._owners[number] = None
        self._completed += len(returned)
        return returned
