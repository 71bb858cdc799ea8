"""What must never happen to a replicated log, judged from outside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from hyperscale.sim.checkers import Checker
from hyperscale.sim.linearizability import LOG, Operation, explain, log_history, log_of


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
        if verb != "append" or not group.startswith("j"):  # others may be over meanwhile
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
    """One order explains what all clients of a group were told."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._asked: dict[str, Operation] = {}
        self._longest: list[str] = []

    def on_asked(self, at: float, node: str, group: str, verb: str, request: str) -> None:
        if group == self._group:
            asked = None if verb == "read" else request
            self._asked[request] = Operation(f"{verb} {request}", at, inf, asked)

    def on_told(
        self, at: float, node: str, group: str, verb: str, request: str, op: int, log: list[str]
    ) -> None:
        if group == self._group:
            told = log_of(log) if verb == "read" else op
            self._asked[request] = replace(self._asked[request], ended=at, told=told)
            self._longest = max(self._longest, log, key=len)

    def at_end(self) -> None:
        history = log_history(list(self._asked.values()), self._longest)
        self.world.coverage["vsr operations in histories"] += len(history)
        explanation = explain(history, LOG)
        stuck = explanation.stuck
        if stuck is not None:
            self.fail(
                f"{self._group}: no order of {len(history)} operations explains {stuck.name}, told "
                f"{stuck.told} at {stuck.ended:.3f}; {len(explanation.order)} have a place"
            )


def all_checkers(groups: Iterable[str]) -> list[Checker]:
    return [OneHistory(), DurableAnswer(), *map(Linearizable, groups)]
