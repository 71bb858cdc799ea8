"""Nodes with one group in one process, with a network and disks that do as they are told."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.ledger.vsr.core import Committed, Save, Send
from hyperscale.ledger.vsr.messages import (
    AnyMessage,
    Bundle,
    Item,
    NewState,
    Saved,
    StartEpoch,
    StartView,
    StartViewChange,
)
from hyperscale.ledger.vsr.replica import NotPrimary, Replica
from hyperscale.ledger.vsr.replica_set import (
    JUMP_MAX,
    Beat,
    Created,
    NodeEffect,
    OfReplica,
    ReplicaSet,
)
from hyperscale.ledger.vsr.settings import VsrSettings
from hyperscale.ledger.vsr.state import ReplicaState
from hyperscale.ledger.vsr.states import MOVES, Status, move

SETTINGS = VsrSettings(lease_s=10.0, heartbeat_s=3.0, retry_s=1.0, view_change_s=10.0)
NAMES = ("a", "b", "c")
GROUP = "job-1"


class World:
    def __init__(self, *names: str) -> None:
        self.now = 0.0
        self.down: set[str] = set()
        self.disks: dict[str, list[Saved]] = {}
        self.committed: dict[str, list[str]] = {}
        self.nodes: dict[str, ReplicaSet] = {}
        self.loses: tuple[type[AnyMessage], ...] = ()
        self.beats = 0
        self._mail: deque[tuple[str, str, Bundle]] = deque()
        for name in names:
            self.start(name)
            self.do(name, self.nodes[name].create(0.0, GROUP, NAMES))

    @property
    def replicas(self) -> dict[str, Replica]:
        return {name: node.replicas[GROUP] for name, node in self.nodes.items()}

    def start(self, name: str, *, forgetful: bool = False) -> None:
        node = ReplicaSet(name, self.now, SETTINGS, Random(name), forgetful=forgetful)
        disk = self.disks.setdefault(name, [])
        if disk:
            state = ReplicaState(NAMES)
            for record in disk:
                state.apply(record)
            node.restore(self.now, GROUP, state)
        self.down.discard(name)
        self.committed[name] = []
        self.nodes[name] = node

    def do(self, name: str, effects: list[NodeEffect]) -> None:
        for effect in effects:
            match effect:
                case Created(record=record):
                    self.disks[name].append(record)
                case Beat(to=to, beat=beat, answer=answer):
                    self.beats += 1
                    self._mail.append((name, to, Bundle((), beat, answer)))
                case OfReplica(effect=Save(number=number, record=record)):
                    self.disks[name].append(record)
                    self.do(name, self.nodes[name].saved(self.now, GROUP, number))
                case OfReplica(effect=Send(to=to, message=message)):
                    if not isinstance(message, self.loses):
                        item = Item(GROUP, NAMES, message)
                        self._mail.append((name, to, Bundle((item,))))
                case OfReplica(effect=Committed(entry=entry)):
                    self.committed[name].append(entry.request)

    def deliver(self) -> None:
        while self._mail:
            sender, to, bundle = self._mail.popleft()
            if not {sender, to} & self.down and to in self.nodes:
                self.do(to, self.nodes[to].receive(self.now, sender, bundle))

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += 0.1
            for name, node in self.nodes.items():
                if name not in self.down:
                    self.do(name, node.tick(self.now))
            self.deliver()

    def submit(self, name: str, request: str, members: tuple[str, ...] = ()) -> int:
        node, payload = self.nodes[name], request.encode()
        op, effects = node.submit(self.now, GROUP, request, payload, members)
        self.do(name, effects)
        self.deliver()
        return op

    def resign(self, name: str) -> None:
        self.do(name, self.nodes[name].resign(self.now))
        self.deliver()

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
    world.wait(SETTINGS.heartbeat_s)
    world.down = {"a"}
    world.wait(SETTINGS.lease_s - 2.0)
    assert {world.replicas[name].state.view for name in "bc"} == {0}
    assert world.replicas["a"].may_read(world.now)
    world.now += 3.0
    assert not world.replicas["a"].may_read(world.now)


def test_a_primary_that_resigns_is_followed_at_once(world: World) -> None:
    world.submit("a", "one")
    world.resign("a")
    assert world.primary() == "b"
    assert not world.replicas["a"].is_primary


def test_a_log_is_kept_until_another_one_is_there(world: World) -> None:
    """The paper cuts it first. Then nobody would have the operation when the new primary dies."""
    world.down = {"c"}
    world.submit("a", "one")
    assert world.committed == {"a": ["one"], "b": [], "c": []}
    world.loses = (StartView, NewState)
    world.resign("a")
    world.wait(3.0)
    assert world.replicas["a"].status is Status.VIEW_CHANGE
    world.loses = ()
    world.start("a")
    world.down = {"b"}
    world.wait(60.0)
    world.submit(world.primary(), "two")
    world.wait(5.0)
    assert world.committed["c"] == ["one", "two"]


def test_who_took_part_in_nothing_is_reminded_when_it_is_back(world: World) -> None:
    world.down = {"c"}
    world.submit("a", "one")
    world.wait(30.0)
    world.down = set()
    world.wait(5.0)
    assert world.committed["c"] == ["one"]


def test_groups_that_rest_cost_no_messages_of_their_own(world: World) -> None:
    for number in range(100):
        for name in NAMES:
            world.do(name, world.nodes[name].create(world.now, f"rests-{number}", NAMES))
    world.deliver()
    world.wait(10.0)
    before = world.beats
    world.wait(30.0)
    pairs, beats = 3, 30 / SETTINGS.heartbeat_s
    assert world.beats - before <= 2 * 2 * pairs * (beats + 1)  # both ways, and the answers


def test_a_promise_outlives_a_restart(world: World) -> None:
    world.down = {"a"}
    world.wait(40.0)
    token = world.replicas["c"].state.token
    world.start("c")
    assert world.replicas["c"].state.token == token > (0, 0)


def test_a_replica_without_its_disk_takes_part_in_nothing_until_it_was_told(world: World) -> None:
    world.submit("a", "one")
    world.disks["c"].clear()
    world.start("c", forgetful=True)
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
    world.start("d")
    world.submit("a", "move", ("b", "c", "d"))
    world.wait(5.0)
    assert world.replicas["a"].finished
    assert world.primary() == "b"
    world.submit("b", "two")
    world.wait(5.0)
    assert world.committed["d"] == ["one", "move", "two"]
    assert world.replicas["d"].state.token[0] == 1


def test_those_who_left_tell_their_successors_after_a_restart_as_well(world: World) -> None:
    world.submit("a", "one")
    for name in "def":
        world.start(name)
    world.loses = (StartEpoch,)
    world.submit("a", "move", ("d", "e", "f"))
    world.wait(5.0)
    for name in NAMES:
        world.start(name)
    world.loses = ()
    world.wait(5.0)
    assert world.primary() == "d"


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


@pytest.mark.parametrize("token", [(0, 1 << 62), (1 << 62, 0), (0, JUMP_MAX + 1)])
def test_a_number_that_jumps_is_refused_with_all_that_came_with_it(token: tuple[int, int]) -> None:
    node = ReplicaSet("a", 0.0, SETTINGS, Random(1))
    node.create(0.0, GROUP, NAMES)
    before = node.replicas[GROUP].state.token
    honest = Item("job-2", NAMES, StartViewChange(0, 1))
    with pytest.raises(ValueError, match="b speaks of"):
        node.receive(1.0, "b", Bundle((honest, Item(GROUP, NAMES, StartViewChange(*token, True)))))
    assert node.replicas[GROUP].state.token == before
    assert "job-2" not in node.replicas
