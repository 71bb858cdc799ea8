"""What must never happen in an election, judged from outside in true time.

Rows 1 to 6 of the table of invariants: who leads, whose lease holds, what was spoken before a crash
and is still true after it, who may disturb a healthy leader, and what a late leader can still do.
"""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.sim.checkers import Checker


class OneLeaderPerTerm(Checker):
    """All that becomes leader or acts as one in a term is the same node."""

    def __init__(self) -> None:
        self._leaders: dict[int, str] = {}

    def on_became_leader(self, at: float, node: str, term: int) -> None:
        self._note(node, term)

    def on_acted(self, at: float, node: str, fence: Fence) -> None:
        self._note(node, fence.term)

    def _note(self, node: str, term: int) -> None:
        first = self._leaders.setdefault(term, node)
        if first != node:
            self.fail(f"{first} and {node} both lead term {term}")


class OneLease(Checker):
    """At no true moment do two nodes believe that their lease is valid.

    A lease is an interval of true time that ends at `until` unless it is given up before. Two
    overlap exactly if one is taken or prolonged while another holds."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, int]] = {}

    def on_lease(self, at: float, node: str, term: int, until: float | None) -> None:
        if until is None or until <= at:
            self._until.pop(node, None)
            return
        self._until[node] = (until, term)
        for other, (end, other_term) in self._until.items():
            if other != node and end > at:
                self.fail(
                    f"{node} holds a lease in term {term} while {other} still has {end - at:.6f} s "
                    f"of its lease in term {other_term}"
                )

    def on_crashed(self, at: float, node: str, disk: str) -> None:
        self._until.pop(node, None)

    def on_stopped(self, at: float, node: str) -> None:
        self._until.pop(node, None)


class TermsKept(Checker):
    """What a node has spoken of, it still knows after any crash, and it never speaks of an
    earlier term as its own again."""

    def __init__(self) -> None:
        self._spoken: dict[str, int] = {}

    def on_spoke(self, at: float, node: str, term: int) -> None:
        self._compare(node, term, "speaks of")
        self._spoken[node] = max(term, self._spoken.get(node, 0))

    def on_remembers(self, at: float, node: str, term: int) -> None:
        self._compare(node, term, "remembers")

    def _compare(self, node: str, term: int, does: str) -> None:
        before = self._spoken.get(node, 0)
        if term < before:
            self.fail(f"{node} {does} term {term} after it spoke of term {before}")


class OneVotePerTerm(Checker):
    """Nobody ever tells two candidates of one term that they have its vote."""

    def __init__(self) -> None:
        self._votes: dict[tuple[str, int], str] = {}

    def on_voted(self, at: float, node: str, term: int, candidate: str) -> None:
        first = self._votes.setdefault((node, term), candidate)
        if first != candidate:
            self.fail(f"{node} voted for {first} and for {candidate} in term {term}")


class HealthyLeaderKept(Checker):
    """Between `calm_begins` and `calm_ends` a majority always hears the leader well, so
    nobody may open another term, however often single nodes are cut off and return."""

    def __init__(self) -> None:
        self._term: int | None = None

    def on_calm_begins(self, at: float, term: int) -> None:
        self._term = term

    def on_calm_ends(self, at: float) -> None:
        self._term = None

    def on_spoke(self, at: float, node: str, term: int) -> None:
        if self._term is not None and term > self._term:
            self.fail(f"{node} opened term {term} against the healthy leader of {self._term}")

    def on_lost_leadership(self, at: float, node: str, term: int, reason: str) -> None:
        if term == self._term:
            self.fail(f"{node} lost its healthy term {term}: {reason}")


class LeaderDespitePartialMesh(Checker):
    """While at least one node hears and is heard by a majority, a leader takes over
    within `PATIENCE_S` and then stays."""

    PATIENCE_S = 30.0

    def __init__(self) -> None:
        self._since: float | None = None
        self._holder = ""
        self._until = 0.0
        self._last_change = 0.0

    def on_mesh_begins(self, at: float, shape: str) -> None:
        self._since = at

    def on_lease(self, at: float, node: str, term: int, until: float | None) -> None:
        if until is not None and until > at:
            if node != self._holder:
                self._last_change = at
            self._holder, self._until = node, until
        elif node == self._holder:
            self._holder = ""

    def on_mesh_ends(self, at: float) -> None:
        if self._since is not None and at - self._since > self.PATIENCE_S:
            if not self._holder or self._until <= at:
                self.fail(f"no leader {at - self._since:.1f} s into a partial mesh")
            elif self._last_change - self._since > self.PATIENCE_S:
                self.fail(f"leadership still changes after {self.PATIENCE_S:g} s of partial mesh")
        self._since = None


class FencesNeverGoBack(Checker):
    """A resource that guards itself with fencing tokens never obeys an older one, nor the
    same command twice."""

    def __init__(self) -> None:
        self._highest: Fence | None = None

    def on_applied(self, at: float, fence: Fence) -> None:
        if self._highest is not None and fence <= self._highest:
            self.fail(f"{tuple(fence)} was obeyed after {tuple(self._highest)}")
        self._highest = fence


def all_checkers() -> list[Checker]:
    return [
        OneLeaderPerTerm(),
        OneLease(),
        TermsKept(),
        OneVotePerTerm(),
        HealthyLeaderKept(),
        LeaderDespitePartialMesh(),
        FencesNeverGoBack(),
    ]
