"""What must never happen to job records, judged from outside: rows 7 to 10 of the table of
invariants, and that what is forgotten stays forgotten."""

from __future__ import annotations

from hyperscale.sim.checkers import Checker

Row = tuple[int, str]


class OneHistory(Checker):
    """Whatever any replica ever applies at an index is the same record."""

    def __init__(self) -> None:
        self._at: dict[int, str] = {}
        self._index_of: dict[str, int] = {}

    def on_applied(self, _at: float, node: str, life: int, index: int, token: str) -> None:
        self._see(node, index, token)

    def on_opened(self, _at: float, node: str, rows: list[Row]) -> None:
        self._see_all(node, rows)

    def on_leads(self, _at: float, node: str, term: int, rows: list[Row]) -> None:
        self._see_all(node, rows)

    def on_acked(self, _at: float, node: str, index: int, token: str, job: str, term: int) -> None:
        self._see(node, index, token)

    def _see_all(self, node: str, rows: list[Row]) -> None:
        for index, token in rows:
            self._see(node, index, token)

    def _see(self, node: str, index: int, token: str) -> None:
        there = self._at.setdefault(index, token)
        if there != token:
            self.fail(f"{node} has {token} at {index}, where {there} is")
        before = self._index_of.setdefault(token, index)
        if before != index:
            self.fail(f"{node} has {token} at {index}, which was at {before}")


class InOrder(Checker):
    """A replica applies upwards, each record once; only what was written appears."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], int] = {}
        self._written: set[str] = set()

    def on_appending(self, _at: float, node: str, token: str) -> None:
        self._written.add(token)

    def on_applied(self, _at: float, node: str, life: int, index: int, token: str) -> None:
        last = self._last.get((node, life), 0)
        if index <= last:
            self.fail(f"{node} applied {index} after {last}")
        if token not in self._written:
            self.fail(f"{node} applied {token}, which nobody wrote")
        self._last[node, life] = index


class NothingLost(Checker):
    """Rows 7 and 10: every leader has all that was confirmed before it became ready."""

    def __init__(self) -> None:
        self._confirmed: dict[str, int] = {}

    def on_acked(self, _at: float, node: str, index: int, token: str, job: str, term: int) -> None:
        if job.startswith("stays"):
            self._confirmed[token] = index

    def on_leads(self, _at: float, node: str, term: int, rows: list[Row]) -> None:
        missing = sorted(self._confirmed.keys() - {token for _, token in rows})
        if missing:
            self.fail(f"{node} leads term {term} without {', '.join(missing[:5])}")


class DurableAck(Checker):
    """At the moment of the answer a majority has the record on stable storage."""

    def on_acked(self, _at: float, node: str, index: int, token: str, job: str, term: int) -> None:
        machines = self.world.machines
        mark = f"<{token}>".encode()
        holding = [name for name in machines if self._holds(name, mark)]
        if len(holding) <= len(machines) // 2:
            self.fail(f"{node} confirmed {token}, which only {', '.join(holding) or 'none'} have")

    def _holds(self, name: str, mark: bytes) -> bool:
        disk = self.world.machines[name].disk
        return any(
            mark in (disk.durable(path) or b"")
            for path, _ in disk.files()
            if path.startswith("records/")
        )


class ForgottenStays(Checker):
    """A job that ended and was dropped by a replica is in no later leader's records."""

    def __init__(self) -> None:
        self._dropped: set[str] = set()

    def on_dropped(self, _at: float, node: str, job: str) -> None:
        self._dropped.add(job.removeprefix("ends "))

    def on_leads(self, _at: float, node: str, term: int, rows: list[Row]) -> None:
        back = sorted(self._dropped & {token for _, token in rows})
        if back:
            self.fail(f"{node} leads term {term} with {', '.join(back[:5])}, long forgotten")


def all_checkers() -> list[Checker]:
    return [OneHistory(), InOrder(), NothingLost(), DurableAck(), ForgottenStays()]
