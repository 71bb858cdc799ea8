"""What must hold of membership, judged from outside with the truth in hand."""

from __future__ import annotations

import math
from collections.abc import Callable

from hyperscale.cluster.membership import Change, Changed, Heartbeat, Via
from hyperscale.sim.checkers import Checker

DATAGRAM_BYTES_MAX = 1_200
# Longer than the longest suspicion and one exchange of news: what disturbed a node before this
# long cannot excuse a verdict now.
CALM_S = 40.0


class Truth(Checker):
    """Who was disturbed when: down, paused, slow, or cut off."""

    name = "Truth"

    def __init__(self) -> None:
        self.down: set[str] = set()
        self._held: dict[str, int] = {}
        self._until: dict[str, float] = {}
        self._cuts = 0
        self._cut_until = -math.inf

    def calm(self, now: float, *names: str) -> bool:
        """None of them has been disturbed for a good while, and the network was whole."""
        if self._cuts or now - self._cut_until < CALM_S:
            return False
        return all(
            name not in self.down
            and not self._held.get(name)
            and now - self._until.get(name, -math.inf) >= CALM_S
            for name in names
        )

    def on_crashed(self, now: float, node: str, disk: str) -> None:
        self.down.add(node)

    def on_stopped(self, now: float, node: str) -> None:
        self.down.add(node)

    def on_restarted(self, now: float, node: str) -> None:
        self.down.discard(node)
        self._until[node] = now

    def on_paused(self, now: float, node: str, seconds: float) -> None:
        self._hold(node)

    def on_resumed(self, now: float, node: str) -> None:
        self._release(now, node)

    def on_slowed(self, now: float, node: str, seconds: float) -> None:
        self._hold(node)

    def on_fast_again(self, now: float, node: str) -> None:
        self._release(now, node)

    def on_cut(self, now: float, what: str) -> None:
        self._cuts += 1

    def on_cut_healed(self, now: float, what: str) -> None:
        self._cuts -= 1
        self._cut_until = now

    def on_clogged(self, now: float, node: str) -> None:
        self._cuts += 1

    def on_unclogged(self, now: float, node: str) -> None:
        self._cuts -= 1
        self._cut_until = now

    def on_healed(self, now: float, core: list[str]) -> None:
        self._cuts = 0
        self._cut_until = now
        for node in sorted(self._held):
            self._held[node] = 0
            self._until[node] = now

    def _hold(self, node: str) -> None:
        self._held[node] = self._held.get(node, 0) + 1

    def _release(self, now: float, node: str) -> None:
        self._held[node] = max(0, self._held.get(node, 0) - 1)
        self._until[node] = now


class LiveNotDead(Checker):
    """A live member that the network can reach is not declared dead."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self.false_positives = 0

    def believed(self, now: float, observer: str, event: Changed) -> None:
        if event.change is not Change.DIED or event.via is not Via.TIMEOUT:
            return
        subject = event.node.node_id
        if subject not in self._truth.down:
            self.false_positives += 1
            if self._truth.calm(now, observer, subject):
                self.fail(f"{observer} declared {subject} dead, which is up and reachable")


class SuspectFirst(Checker):
    """Nobody dies in a view without having been suspected there, unless told so."""

    def __init__(self) -> None:
        self._suspected: set[tuple[str, str]] = set()

    def believed(self, now: float, observer: str, event: Changed) -> None:
        pair = (observer, event.node.node_id)
        if event.change is Change.SUSPECTED:
            self._suspected.add(pair)
        elif event.change is Change.DIED:
            if event.via is Via.TIMEOUT and pair not in self._suspected:
                self.fail(f"{observer} buried {pair[1]} without suspecting it first")
            if event.via is Via.TIMEOUT and not event.confirmed:
                self.fail(f"{observer} declared {pair[1]} dead without ever hearing from it")
            self._suspected.discard(pair)


class OwnIncarnation(Checker):
    """Only the owner raises its incarnation, and a restart exceeds every earlier life."""

    def __init__(self, spoken: Callable[[str], int]) -> None:
        self._spoken = spoken
        self._highest: dict[str, int] = {}

    def believed(self, now: float, observer: str, event: Changed) -> None:
        subject = event.node.node_id
        if event.incarnation <= self._highest.get(subject, -1):
            return
        highest = self._highest[subject] = self._spoken(subject)
        if event.incarnation > highest and event.change is not Change.CONFLICT:
            self.fail(
                f"{observer} believes {subject} at incarnation {event.incarnation}, "
                f"which never spoke above {highest}"
            )

    def born(self, node: str, incarnation: int, before: int) -> None:
        if incarnation <= before:
            self.fail(f"{node} restarted as incarnation {incarnation} after {before}")


class CrashKnown(Checker):
    """Every crash is known everywhere within the bound."""

    def __init__(self, bound_s: float) -> None:
        self._bound_s = bound_s
        self._since: float | None = None
        self.took_s = 0.0

    def killed(self, now: float) -> None:
        self._since = now

    def poll(self, now: float, ignorant: list[str]) -> None:
        """Called while the crash may be unknown to some."""
        if self._since is None:
            return
        self.took_s = now - self._since
        if not ignorant:
            self._since = None
        elif self.took_s > self._bound_s:
            self.fail(f"after {self.took_s:.1f} s {ignorant[0]} still misses a crash")


class NoResurrection(Checker):
    """Who has left stays away, whatever stale views are exchanged."""

    def __init__(self) -> None:
        self._gone: set[str] = set()
        self._knew: set[tuple[str, str]] = set()

    def left(self, node: str) -> None:
        self._gone.add(node)

    def believed(self, now: float, observer: str, event: Changed) -> None:
        subject = event.node.node_id
        if event.change is Change.LEFT:
            self._knew.add((observer, subject))
        revived = event.change in (Change.REVIVED, Change.DISCOVERED, Change.JOINED)
        if revived and subject in self._gone and (observer, subject) in self._knew:
            self.fail(f"{observer} knew that {subject} left, and now believes it alive")


class DatagramBudget(Checker):
    """No datagram is larger than 1,200 bytes, whatever the cluster size."""

    def __init__(self) -> None:
        self.largest = 0

    def sent(self, node: str, size: int) -> None:
        if size > self.largest:
            self.largest = size
            if size > DATAGRAM_BYTES_MAX:
                self.fail(f"{node} sent a datagram of {size} bytes")


class Bounded(Checker):
    """Queues follow the number of members, never the number of events."""

    def poll(self, node: str, members: int, news: int, deadlines: int) -> None:
        if news > members + 1:
            self.fail(f"{node} queues {news} pieces of news about {members} members")
        if deadlines > 4 * members + 2_048:
            self.fail(f"{node} has {deadlines} deadlines for {members} members")


class FreshHeartbeats(Checker):
    """A heartbeat older than one already seen is never delivered."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], tuple[int, int]] = {}

    def heard(self, observer: str, event: Heartbeat) -> None:
        pair = (observer, event.node.node_id)
        offered = (event.node.incarnation, event.version)
        if offered <= self._newest.get(pair, (-1, -1)):
            self.fail(f"{observer} took heartbeat {offered} of {pair[1]} after a newer one")
        self._newest[pair] = offered
