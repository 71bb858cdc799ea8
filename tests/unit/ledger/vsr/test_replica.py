"""A group of replicas in one process, with a network and disks that do as they are told."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.ledger.vsr.core import Committed, Effect, Save, Send
from hyperscale.ledger.vsr.messages import AnyMessage, NewState, Saved, StartView
from hyperscale.ledger.vsr.replica import NotPrimary, Replica
from hyperscale.ledger.vsr.settings import VsrSettings
from hyperscale.ledger.vsr.state import ReplicaState
from hyperscale.ledger.vsr.states import MOVES, Status, move

SETTINGS = VsrSettings(lease_s=10.0, heartbeat_s=3.0, retry_s=1.0, view_change_s=10.0)
NAMES = ("a", "b", "c")


class World:
    def __init__(self, *names: str) -> None:
        self.now = 0.0
        self.down: set[str] = set()
        self.disks: dict[str, list[Saved]] = {name: [] for name in names}
        self.committed: dict[str, list[str]] = {name: [] for name in names}
        self.replicas: dict[str, Replica] = {}
        self.loses: tuple[type[AnyMessage], ...] = ()
        self._mail: deque[tuple[str, str, AnyMessage]] = deque()
        for name in names:
            self.start(name)

    def start(self, name: str, status: Status = Status.NORMAL) -> None:
        state = ReplicaState(NAMES)
        for record in self.disks[name]:
            state.apply(record)
        self.down.discard(name)
        self.committed[name] = []
        self.replicas[name] = Replica(name, state, self.now, SETTINGS, Random(name), status=status)

    def do(self, name: str, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Save(number=number, record=record):
                    self.disks[name].append(record)
                    self.do(name, self.replicas[name].saved(self.now, number))
                case Send(to=to, message=message):
                    self._mail.append((name, to, message))
                case Committed(entry=entry):
                    self.committed[name].append(entry.request)

    def deliver(self) -> None:
        while self._mail:
            sender, to, message = self._mail.popleft()
            if {sender, to} & self.down or to not in self.replicas:
                continue
            if not isinstance(message, self.loses):
                self.do(to, self.replicas[to].receive(self.now, sender, message))

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += 0.1
            for name, replica in self.replicas.items():
                if name not in self.down:
                    self.do(name, replica.tick(self.now))
            self.deliver()

    def submit(self, name: str, request: str, members: tuple[str, ...] = ()) -> int:
        op, effects = self.replicas[name].submit(self.now, request, request.encode(), members)
        self.do(name, effects)
        self.deliver()
        return op

    def primary(self) -> str:
        live = [r for name, r in self.replicas.items() if name not in self.down and r.is_primary]
        return max(live, key=lambda one: one.state.token).me


@pytest.fixture
def world() -> World:
    world = World(*NAMES)
    world.wait(1.0)
    return world


def test_an_operation_is_committed_when_a_quorum_has_it(world: World) -> None:
    world.down = {"c"}
    assert world.submit("a", "one") == 1
    assert world.committed["a"] == ["one"]
    world.down = {"b", "c"}
    world.submit("a", "two")
    assert world.committed["a"] == ["one"]


def test_the_same_request_is_the_same_operation(world: World) -> None:
    assert [world.submit("a", "one"), world.submit("a", "two"), world.submit("a", "one")] == [
        1,
        2,
        1,
    ]


def test_who_is_not_the_primary_names_it(world: World) -> None:
    with pytest.raises(NotPrimary) as raised:
        world.submit("b", "one")
    assert raised.value.primary == "a"


def test_the_next_primary_has_what_was_committed(world: World) -> None:
    world.submit("a", "one")
    world.down = {"a"}
    world.wait(40.0)
    assert world.primary() == "b"
    world.submit("b", "two")
    assert world.committed["b"] == ["one", "two"]
    world.down = set()
    world.wait(5.0)
    assert world.committed["a"] == ["one", "two"]


def test_nobody_leaves_a_primary_within_its_lease(world: World) -> None:
    world.wait(1.0)
    world.down = {"a"}
    world.wait(SETTINGS.lease_s - 1.5)
    assert {world.replicas[name].state.view for name in "bc"} == {0}
    assert world.replicas["a"].may_read(world.now)
    world.now += 2.0
    assert not world.replicas["a"].may_read(world.now)


def test_a_primary_that_resigns_is_followed_at_once(world: World) -> None:
    world.submit("a", "one")
    world.do("a", world.replicas["a"].resign(world.now))
    world.deliver()
    assert world.primary() == "b"
    assert not world.replicas["a"].is_primary


def test_a_log_is_kept_until_another_one_is_there(world: World) -> None:
    """The paper cuts it first. Then nobody would have the operation when the new primary dies."""
    world.down = {"c"}
    world.submit("a", "one")
    assert world.committed == {"a": ["one"], "b": [], "c": []}
    world.loses = (StartView, NewState)
    world.do("a", world.replicas["a"].resign(world.now))
    world.deliver()
    world.wait(3.0)
    assert world.replicas["a"].status is Status.VIEW_CHANGE
    world.loses = ()
    world.start("a")
    world.down = {"b"}
    world.wait(60.0)
    world.submit(world.primary(), "two")
    world.wait(5.0)
    assert world.committed["c"] == ["one", "two"]


def test_a_promise_outlives_a_restart(world: World) -> None:
    world.down = {"a"}
    world.wait(40.0)
    token = world.replicas["c"].state.token
    world.start("c")
    assert world.replicas["c"].state.token == token > (0, 0)


def test_a_replica_without_its_disk_takes_part_in_nothing_until_it_was_told(world: World) -> None:
    world.submit("a", "one")
    world.disks["c"].clear()
    world.start("c", Status.RECOVERING)
    world.down = {"b"}
    world.wait(5.0)
    world.submit("a", "two")
    assert world.committed["a"] == ["one"]
    world.down = set()
    world.wait(5.0)
    assert world.replicas["c"].status is Status.NORMAL
    assert world.committed["c"] == ["one", "two"]


def test_a_group_that_changes_takes_its_log_along(world: World) -> None:
    world.submit("a", "one")
    world.disks["d"] = []
    world.start("d")
    world.submit("a", "move", ("b", "c", "d"))
    world.wait(5.0)
    assert world.replicas["a"].finished
    assert world.primary() == "b"
    world.submit("b", "two")
    world.wait(5.0)
    assert world.committed["d"] == ["one", "move", "two"]
    assert world.replicas["d"].state.token[0] == 1


def test_no_operation_follows_the_end_of_an_epoch(world: World) -> None:
    world.down = {"b", "c"}
    world.submit("a", "move", ("a", "b", "d"))
    with pytest.raises(NotPrimary):
        world.submit("a", "late")


@pytest.mark.parametrize("status", Status)
def test_moves_that_the_table_does_not_have_are_bugs(status: Status) -> None:
    for other in set(Status) - MOVES[status]:
        with pytest.raises(InvariantBroken):
            move(status, other)
