"""What a log owes its callers, judged from outside.

The checkers know every record that was ever handed over, what was acknowledged, and the true
contents of the disks. A disk that rotted may cost the batch in doubt (the cut is reported) or the
whole log (it is refused); anything else that goes missing is a bug.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from zlib import crc32

from hyperscale.sim.checkers import Checker

WAIT_S_MAX = 15.0
"""Two hundred times slower than healthy, a sync takes 0.4 s; a full queue is a few batches."""

Row = tuple[int, str]
"""LSN and token: what a record says, and no other says."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a node found at its start."""

    rows: list[Row]
    rows_again: list[Row]
    first_lsn: int
    next_lsn: int
    cut_bytes: int
    checkpoint_lsn: int
    state: tuple[int, int]


def fold(state: tuple[int, int], row: Row) -> tuple[int, int]:
    """The state that the nodes build: it depends on every record and on their order."""
    return state[0] + 1, crc32(f"{row[0]} {row[1]}".encode(), state[1])


class RotAware(Checker):
    def __init__(self) -> None:
        self.rotted: set[str] = set()

    def on_rotted(self, at: float, node: str, path: str, offset: int) -> None:
        self.rotted.add(node)


class DurableAck(Checker):
    """At the moment of an acknowledgement a power cut would not lose the record."""

    def on_durable(self, at: float, node: str, life: str, lsn: int, token: str) -> None:
        disk = self.world.machines[node].disk
        paths = [path for path, _ in disk.files() if path.startswith("wal/segment_")]
        needle = f"<{token}>".encode()
        for path in reversed(paths):
            if needle in (disk.durable(path) or b""):
                return
        self.fail(f"{node} acknowledged LSN {lsn}, {token}, which is not on its platter")


@dataclass
class _Known:
    tried: set[str] = field(default_factory=set)
    rows: dict[int, str] = field(default_factory=dict)
    """Acknowledged, followed or recovered: must be there from then on."""


class NothingLost(RotAware):
    """A start finds every record that was durable before, in its place, once, and no other that
    was never handed over. Damage is told, never skipped."""

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[str, _Known] = defaultdict(_Known)

    def on_appending(self, at: float, node: str, token: str) -> None:
        self._nodes[node].tried.add(token)

    def on_durable(self, at: float, node: str, life: str, lsn: int, token: str) -> None:
        self._learn(node, lsn, token)

    def on_followed(self, at: float, node: str, lsn: int, token: str) -> None:
        self._learn(node, lsn, token)

    def on_recovered(self, at: float, node: str, life: str, found: Recovery) -> None:
        known = self._nodes[node]
        self._check_rows(node, known, found.rows)
        if found.rows != found.rows_again:
            self.fail(f"{node} read its log twice and got two answers")
        here = dict(found.rows)
        lost = [lsn for lsn in known.rows if lsn >= found.first_lsn and lsn not in here]
        if lost:
            excused = (
                node in self.rotted and found.cut_bytes > 0 and min(lost) > max(here, default=0)
            )
            if not excused:
                self.fail(f"{node} lost {len(lost)} durable records, first LSN {min(lost)}")
            for lsn in lost:
                del known.rows[lsn]
        for lsn, token in found.rows:
            self._learn(node, lsn, token)

    def on_refused(self, at: float, node: str, error: str) -> None:
        if node not in self.rotted:
            self.fail(f"{node} refuses a log that nothing has damaged: {error}")

    def _check_rows(self, node: str, known: _Known, rows: list[Row]) -> None:
        tokens = {token for _, token in rows}
        if len(tokens) != len(rows):
            self.fail(f"{node} recovered a record twice")
        if strange := sorted(tokens - known.tried):
            self.fail(f"{node} recovered {strange[0]}, which nobody has written")
        lsns = [lsn for lsn, _ in rows]
        if lsns != sorted(set(lsns)):
            self.fail(f"{node} recovered records out of order")

    def _learn(self, node: str, lsn: int, token: str) -> None:
        before = self._nodes[node].rows.setdefault(lsn, token)
        if before != token:
            self.fail(f"{node} had {before} at LSN {lsn} and now has {token}")


class Numbering(Checker):
    """LSNs rise in the order of appending, acknowledgements come in that order, and no number is
    ever given to two records, whatever was cut in between."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, int], str] = {}
        self._next_at_least: dict[str, int] = defaultdict(int)
        self._order: dict[str, int] = {}
        self._last: dict[str, tuple[int, int]] = {}

    def on_appending(self, at: float, node: str, token: str) -> None:
        self._order[token] = len(self._order)

    def on_acked(self, at: float, node: str, life: str, lsn: int, token: str) -> None:
        now = (lsn, self._order[token])
        last = self._last.get(life, (0, -1))
        if now[0] <= last[0] or now[1] <= last[1]:
            self.fail(f"{node} acknowledged {token} as LSN {lsn} after LSN {last[0]}")
        self._last[life] = now

    def on_durable(self, at: float, node: str, life: str, lsn: int, token: str) -> None:
        self._give(node, lsn, token)

    def on_recovered(self, at: float, node: str, life: str, found: Recovery) -> None:
        for lsn, token in found.rows:
            self._give(node, lsn, token)
        if found.next_lsn <= self._next_at_least[node]:
            self.fail(f"{node} goes on with LSN {found.next_lsn}, which was given before")

    def _give(self, node: str, lsn: int, token: str) -> None:
        before = self._given.setdefault((node, lsn), token)
        if before != token:
            self.fail(f"{node} gave LSN {lsn} to {before} and to {token}")
        self._next_at_least[node] = max(self._next_at_least[node], lsn)


class FailStop(Checker):
    """After a failed write or sync nothing is acknowledged by that log any more."""

    def __init__(self) -> None:
        self._failed: set[str] = set()

    def on_log_failed(self, at: float, node: str, life: str) -> None:
        self._failed.add(life)

    def on_durable(self, at: float, node: str, life: str, lsn: int, token: str) -> None:
        if life in self._failed:
            self.fail(f"{node} acknowledged LSN {lsn} after its disk had failed")


class SameState(Checker):
    """Checkpoint and tail together give the state that the whole history gives."""

    def __init__(self) -> None:
        self._history: dict[str, dict[int, str]] = defaultdict(dict)

    def on_followed(self, at: float, node: str, lsn: int, token: str) -> None:
        self._history[node][lsn] = token

    def on_recovered(self, at: float, node: str, life: str, found: Recovery) -> None:
        history = self._history[node]
        covered = [(lsn, token) for lsn, token in history.items() if lsn <= found.checkpoint_lsn]
        after = [row for row in found.rows if row[0] > found.checkpoint_lsn]
        state = (0, 0)
        for row in [*sorted(covered), *after]:
            state = fold(state, row)
        if state != found.state:
            self.fail(f"{node} has state {found.state} where the history gives {state}")
        self._history[node] = dict([*covered, *after])


class BoundedWait(Checker):
    """Nobody waits for ever: not for the disk, not in the queue, not at a close."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, str]] = {}

    def on_appending(self, at: float, node: str, token: str) -> None:
        self._since[token] = (at, node)

    def on_answered(self, at: float, node: str, token: str) -> None:
        began, _ = self._since.pop(token)
        if at - began > WAIT_S_MAX:
            self.fail(f"{node} answered {token} after {at - began:.1f} s")

    def on_crashed(self, at: float, node: str, disk: str) -> None:
        self._since = {token: entry for token, entry in self._since.items() if entry[1] != node}

    def on_polled(self, at: float) -> None:
        for token, (began, node) in self._since.items():
            if at - began > WAIT_S_MAX:
                self.fail(f"{node} has not answered {token} for {at - began:.1f} s")
            return  # the others wait for less
