"""What a gate concludes from answered and missed probes, by its table of states."""

from __future__ import annotations

import pytest

from hyperscale.cluster.datacenters import (
    Facts,
    Health,
    Probe,
    ProbeSettings,
    Reach,
    Verdict,
    Watch,
)
from hyperscale.cluster.datacenters.reach import TRANSITIONS, Event

NAMES = ("ap", "eu", "us")
WELL = Facts(managers=3, managers_alive=3, workers=3, workers_healthy=3, cores=12, cores_free=12)
SETTINGS = ProbeSettings()


class Gate:
    """A watch whose datacenters answer but for those that are `cut`, or whose host is `gone`."""

    def __init__(self, *names: str, managers: int = 1, settings: ProbeSettings = SETTINGS) -> None:
        places = {
            name: [(f"10.0.{number}.{one}", 7_000) for one in range(managers)]
            for number, name in enumerate(names or NAMES)
        }
        self.watch = Watch(settings, places)
        self.now = 0.0
        self.cut: set[str] = set()
        self.dead: set[tuple[str, int]] = set()
        self.refusing: set[str] = set()
        self.facts = WELL
        self.asked: list[Probe] = []
        self._waiting: list[tuple[float, Probe]] = []
        self.changes: list[tuple[float, str, str]] = []

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            for probe in self.watch.due(self.now):
                self.asked.append(probe)
                self._send(probe)
            for at, probe in [one for one in self._waiting if one[0] <= self.now]:
                self._waiting.remove((at, probe))
                self._note(self.watch.missed(self.now, probe, "no answer within 5 s"))
            self._note(self.watch.tick(self.now))
            self.now += 0.25

    def _send(self, probe: Probe) -> None:
        if probe.datacenter in self.refusing:
            self._note(self.watch.missed(self.now, probe, "nobody listens", refused=True))
        elif probe.datacenter in self.cut or probe.to in self.dead:
            self._waiting.append((self.now + self.watch.settings.timeout_s, probe))
        else:
            others = self.watch.datacenters[probe.datacenter].managers
            self._note(
                self.watch.answered(
                    self.now, probe, 0.08, leader="m1", others=tuple(others), facts=self.facts
                )
            )

    def _note(self, changes: list) -> None:  # type: ignore[type-arg]
        self.changes += [(self.now, one.datacenter, one.after.value) for one in changes]

    def reach(self, name: str) -> Reach:
        return self.watch.datacenters[name].reach

    def when(self, name: str, state: str) -> float:
        return next(at for at, who, what in self.changes[::-1] if (who, what) == (name, state))


def test_the_table_is_whole() -> None:
    assert set(TRANSITIONS) == set(Reach)
    assert {event for row in TRANSITIONS.values() for event in row} == set(Event)
    assert all(Event.ANSWERED in TRANSITIONS[one] for one in (Reach.SUSPECTED, Reach.UNREACHABLE))


def test_the_first_answer_makes_it_reachable() -> None:
    gate = Gate()
    assert gate.reach("eu") is Reach.UNREACHABLE
    gate.run(1)
    assert gate.reach("eu") is Reach.REACHABLE
    assert gate.watch.health(gate.now, "eu") == (Health.HEALTHY, "")


def test_one_exchange_every_two_seconds() -> None:
    gate = Gate(managers=5)
    gate.run(20)
    assert len(gate.asked) == 3 * 10


def test_a_black_hole_is_suspected_then_unreachable_and_comes_back() -> None:
    gate = Gate()
    gate.run(10)
    gate.cut = {"eu"}
    gate.run(60)
    suspected, gone = gate.when("eu", "suspected"), gate.when("eu", "unreachable")
    assert 12 <= suspected - 10 <= 15.5
    assert 30 <= gone - suspected <= 30.5
    assert gate.reach("us") is Reach.REACHABLE
    assert gate.watch.health(gate.now, "eu")[0] is Health.UNHEALTHY
    gate.cut = set()
    gate.run(3)
    assert gate.reach("eu") is Reach.REACHABLE


def test_suspected_and_answered_is_reachable() -> None:
    gate = Gate()
    gate.run(10)
    gate.cut = {"eu"}
    gate.run(20)
    assert gate.reach("eu") is Reach.SUSPECTED
    assert gate.watch.health(gate.now, "eu")[0] is Health.DEGRADED
    gate.cut = set()
    gate.run(3)
    assert gate.reach("eu") is Reach.REACHABLE


def test_any_manager_that_answers_is_the_datacenter() -> None:
    """The leader dies: the next probe goes to another, before the miss of the first is known."""
    gate = Gate(managers=3)
    gate.run(10)
    gate.dead = {gate.watch.datacenters["eu"].managers[0]}
    gate.run(60)
    assert gate.reach("eu") is Reach.REACHABLE
    assert not [one for one in gate.changes if one[1:] == ("eu", "suspected")]


def test_the_leader_is_asked_first() -> None:
    gate = Gate("eu", managers=3)
    (probe,) = gate.watch.due(0.0)
    leader = ("10.0.0.2", 7_000)
    gate.watch.answered(0.1, probe, 0.1, leader="m3", leader_at=leader, facts=WELL)
    (probe,) = gate.watch.due(2.1)
    assert probe.to == leader


def test_a_late_miss_of_an_older_probe_says_nothing() -> None:
    gate = Gate("eu")
    (first,) = gate.watch.due(0.0)
    (second,) = gate.watch.due(2.0)
    gate.watch.answered(2.1, second, 0.1, facts=WELL)
    gate.watch.missed(5.0, first, "no answer within 5 s")
    assert gate.watch.datacenters["eu"].failures == 0


def test_the_own_line_is_one_event_and_evicts_nobody() -> None:
    gate = Gate()
    gate.run(10)
    gate.cut = set(NAMES)
    gate.run(SETTINGS.hold_s)
    assert {gate.reach(name) for name in NAMES} == {Reach.SUSPECTED}
    assert gate.watch.line_in_doubt(gate.now)
    assert "own line" in gate.watch.health(gate.now, "eu")[1]
    assert gate.watch.verdict(gate.now, "eu", (), ()) is Verdict.WAIT
    gate.run(10)  # a disaster is believed in the end
    assert {gate.reach(name) for name in NAMES} == {Reach.UNREACHABLE}
    assert gate.watch.verdict(gate.now, "eu", (), ()) is Verdict.LOST


def test_those_that_fall_silent_one_after_the_other_are_no_event() -> None:
    gate = Gate()
    gate.run(10)
    for name in NAMES:
        gate.cut.add(name)
        gate.run(SETTINGS.together_s + 5)
    gate.run(40)
    assert {gate.reach(name) for name in NAMES} == {Reach.UNREACHABLE}


def test_a_host_that_refuses_calls_is_no_silence() -> None:
    gate = Gate()
    gate.run(10)
    gate.refusing, gate.cut = {"eu", "us"}, {"ap"}
    gate.run(20)
    assert not gate.watch.line_in_doubt(gate.now)
    assert gate.watch.verdict(gate.now, "eu", (), ()) is Verdict.LOST


@pytest.mark.parametrize(
    ("cut", "others", "gates", "expected"),
    [
        (set(), {}, (), Verdict.LOST),  # its managers answer: the job alone is lost
        ({"eu"}, {}, ("g2",), Verdict.LOST),
        ({"eu"}, {"g2": NAMES}, ("g2",), Verdict.HAND_OVER),
        ({"eu"}, {"g2": NAMES}, ("g3",), Verdict.LOST),  # may not have it
        ({"eu"}, {"g2": ("eu",)}, ("g2",), Verdict.LOST),  # would soon hand it back
        (set(NAMES), {"g2": ("eu",)}, ("g2",), Verdict.HAND_OVER),
        (set(NAMES), {"g2": ()}, ("g2",), Verdict.WAIT),
    ],
)
def test_what_silence_means_for_a_job(
    cut: set[str], others: dict[str, tuple[str, ...]], gates: tuple[str, ...], expected: Verdict
) -> None:
    gate = Gate()
    gate.run(10)
    gate.cut = cut
    gate.run(20)
    for other, reached in others.items():
        gate.watch.told_by(gate.now, other, reached)
    assert gate.watch.verdict(gate.now, "eu", ("us", "ap"), gates) is expected


def test_a_witness_is_believed_for_a_while() -> None:
    gate = Gate()
    gate.watch.told_by(0.0, "g2", ["eu"])
    assert gate.watch.reached_by(SETTINGS.witness_s, "eu") == ["g2"]
    assert gate.watch.reached_by(SETTINGS.witness_s + 1, "eu") == []


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "healthy"),
        ({"workers": 0, "workers_healthy": 0}, "unhealthy"),
        ({"managers_alive": 0}, "unhealthy"),
        ({"workers_healthy": 0}, "unhealthy"),
        ({"workers_healthy": 1}, "degraded"),
        ({"managers_alive": 1}, "degraded"),
        ({"managers_alive": 2, "workers_healthy": 2}, "healthy"),
        ({"cores_free": 0}, "busy"),
        ({"load": 3}, "busy"),
        ({"cores_free": 0, "workers_healthy": 1}, "degraded"),
    ],
)
def test_health_by_what_the_leader_tells(facts: dict[str, int], expected: str) -> None:
    import msgspec

    gate = Gate("eu")
    gate.facts = msgspec.structs.replace(WELL, **facts)
    gate.run(1)
    health, why = gate.watch.health(gate.now, "eu")
    assert (health.word, bool(why)) == (expected, expected != "healthy")


def test_old_facts_are_not_believed() -> None:
    gate = Gate("eu")
    gate.run(1)
    one = gate.watch.datacenters["eu"]
    for _ in range(20):  # answers of a manager that does not lead
        gate.now += 2
        (probe,) = gate.watch.due(gate.now)
        gate.watch.answered(gate.now, probe, 0.1, leader="m2")
    assert one.reach is Reach.REACHABLE
    assert gate.watch.health(gate.now, "eu") == (
        Health.DEGRADED,
        "its leader tells nothing of it",
    )


def test_a_gate_that_was_stopped_judges_nobody_by_that_time() -> None:
    """Its clock went on, and it asked nobody: what it knows of the others is from before."""
    gate = Gate()
    gate.run(30)
    gate.now += 20  # SIGSTOP, or a virtual machine that was moved
    assert gate.watch.verdict(gate.now, "eu", (), ()) is Verdict.WAIT
    assert gate.watch.was_away(gate.now)
    gate.cut = {"eu"}
    gate.run(3)
    assert gate.watch.verdict(gate.now, "eu", (), ()) is Verdict.WAIT
    gate.run(10)
    assert gate.watch.verdict(gate.now, "eu", (), ()) is Verdict.LOST
    assert not gate.watch.was_away(gate.now)
