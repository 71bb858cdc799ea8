"""What must never happen to a replicated log, judged from outside.

Whether a history is linearizable is hard to say in general and easy for a log whose answers carry
positions: an append is the moment at which the log grows to its op, a read one at which it is as
long as what was read. That fixes the order of everything but reads of the same length. So a history
has an explanation if the order by length contradicts nobody's time: what ended before something
else began must not come after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from hyperscale.sim.checkers import Checker


@dataclass(slots=True)
class Operation:
    verb: str
    request: str
    began: float
    ended: float = inf
    op: int = 0  # of an append: where it is; of a read: how long the log was


class OneHistory(Checker):
    """Whatever any replica ever commits at an op is the same, and each request is there once."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, int], str] = {}
        self._op_of: dict[str, int] = {}
        self._last: dict[tuple[str, int, str], int] = {}

    def on_applied(
        self, _at: float, node: str, group: str, life: int, op: int, request: str
    ) -> None:
        last = self._last.get((node, life, group), 0)
        if op != last + 1:
            self.fail(f"{node} committed op {op} of {group} after op {last}")
        self._last[node, life, group] = op
        there = self._at.setdefault((group, op), request)
        if there != request:
            self.fail(f"{node} committed {request} as op {op}, where {there} is")
        before = self._op_of.setdefault(request, op)
        if before != op:
            self.fail(f"{node} committed {request} as op {op} and as op {before}")


class DurableAnswer(Checker):
    """At the moment of the answer two of the three have the operation on stable storage."""

    def on_told(
        self, _at: float, node: str, group: str, verb: str, request: str, op: int, log: list[str]
    ) -> None:
        if verb != "append":
            return
        mark = f"<{request}>".encode()
        holding = [name for name in self.world.machines if self._holds(name, mark)]
        lost = self.world.coverage["vsr lost disk"] > 0
        if len(holding) < (1 if lost else 2):
            self.fail(f"{request} was confirmed, and only {', '.join(holding) or 'nobody'} has it")

    def _holds(self, name: str, mark: bytes) -> bool:
        disk = self.world.machines[name].disk
        return any(mark in (disk.durable(path) or b"") for path, _ in disk.files())


class Linearizable(Checker):
    def __init__(self, group: str) -> None:
        self._group = group
        self._all: dict[str, Operation] = {}
        self._log: list[str] = []

    def on_asked(self, at: float, node: str, group: str, verb: str, request: str) -> None:
        if group == self._group:
            self._all[request] = Operation(verb, request, at)

    def on_told(
        self, at: float, node: str, group: str, verb: str, request: str, op: int, log: list[str]
    ) -> None:
        if group != self._group:
            return
        known = self._all[request]
        known.ended, known.op = at, op
        if verb == "read":
            shared = min(len(log), len(self._log))
            if log[:shared] != self._log[:shared]:
                self.fail(f"{request} read another log than was read before")
            self._log = max(self._log, log, key=len)

    def at_end(self) -> None:
        for op, request in enumerate(self._log, 1):
            known = self._all[request]
            if known.op not in (0, op):
                self.fail(f"{request} was told op {known.op} and read as op {op}")
            known.op = op
        seen = [one for one in self._all.values() if one.op]
        appends = [one for one in seen if one.verb != "read"]
        if len({one.op for one in appends}) != len(appends):
            self.fail("two requests were told the same op")
        # In the order of the explanation: by length, the append that made it before its readers.
        seen.sort(key=lambda one: (one.op, one.verb == "read"))
        latest: Operation | None = None
        for one in reversed(seen):
            if latest is not None and latest.ended < one.began and not _free(one, latest):
                self.fail(
                    f"{latest.verb} {latest.request} ended with op {latest.op} before "
                    f"{one.verb} {one.request} began, which has op {one.op}"
                )
            if latest is None or one.ended < latest.ended:
                latest = one


def _free(one: Operation, other: Operation) -> bool:
    """Two reads of the same length may come in any order."""
    return one.op == other.op and one.verb == other.verb == "read"


def all_checkers(groups: Iterable[str]) -> list[Checker]:
    return [OneHistory(), DurableAnswer(), *map(Linearizable, groups)]
