from __future__ import annotations

import pytest

from hyperscale.cluster.overload import Category, Circuit, Circuits, CircuitSettings
from hyperscale.cluster.overload.circuit import TRANSITIONS, CircuitState, Ticket


def fail(circuit: Circuit, *times: float, category: Category = Category.NETWORK) -> None:
    for now in times:
        ticket = circuit.allow(now)
        assert ticket is not None
        circuit.failed(now, ticket, category)


def admitted(circuit: Circuit, now: float) -> Ticket:
    ticket = circuit.allow(now)
    assert ticket is not None
    return ticket


def test_three_failures_within_thirty_seconds_open_it() -> None:
    circuit = Circuit()
    fail(circuit, 0.0, 15.0, 30.0)
    assert circuit.state is CircuitState.OPEN
    assert circuit.allow(30.0) is None
    assert circuit.status(32.0).retry_after_s == 8.0


def test_failures_further_apart_do_not() -> None:
    circuit = Circuit()
    fail(circuit, 0.0, 15.0, 30.1, 46.0)
    assert circuit.state is CircuitState.CLOSED
    assert circuit.status(46.0).failures == {Category.NETWORK: 2}


def test_after_ten_seconds_one_test_passes_and_success_closes() -> None:
    circuit = Circuit()
    fail(circuit, 0.0, 0.0, 0.0)
    assert circuit.allow(9.9) is None
    test = admitted(circuit, 10.0)
    assert circuit.state is CircuitState.HALF_OPEN
    assert circuit.allow(10.0) is None, "one test at a time"
    circuit.succeeded(10.1, test)
    assert circuit.state is CircuitState.CLOSED
    assert circuit.status(10.1).failures == {}


def test_a_failed_test_opens_it_for_another_ten_seconds() -> None:
    circuit = Circuit()
    fail(circuit, 0.0, 0.0, 0.0)
    circuit.failed(10.5, admitted(circuit, 10.0))
    assert circuit.state is CircuitState.OPEN
    assert circuit.allow(20.4) is None
    assert circuit.allow(20.5) is not None
    assert circuit.opened_count == 2


def test_results_of_another_period_decide_nothing() -> None:
    circuit = Circuit()
    old = [admitted(circuit, 0.0) for _ in range(6)]
    for ticket in old[:3]:
        circuit.failed(1.0, ticket)
    test = admitted(circuit, 11.0)
    circuit.succeeded(11.0, old[3])
    circuit.failed(11.0, old[4])
    assert circuit.state is CircuitState.HALF_OPEN
    circuit.succeeded(11.0, test)
    circuit.failed(11.0, old[5])
    assert circuit.status(11.0).failures == {}


def test_a_test_that_never_ends_gives_its_place_back() -> None:
    circuit = Circuit()
    fail(circuit, 0.0, 0.0, 0.0)
    lost = admitted(circuit, 10.0)
    assert circuit.status(15.0).retry_after_s == 5.0
    again = admitted(circuit, 20.0)
    circuit.failed(20.0, lost)
    assert circuit.state is CircuitState.HALF_OPEN, "given up is given up"
    circuit.succeeded(20.0, again)
    assert circuit.state is CircuitState.CLOSED


def test_several_tests_must_all_succeed() -> None:
    circuit = Circuit(CircuitSettings(tests=2))
    fail(circuit, 0.0, 0.0, 0.0)
    first, second = admitted(circuit, 10.0), admitted(circuit, 10.0)
    circuit.succeeded(10.0, first)
    assert circuit.state is CircuitState.HALF_OPEN
    assert circuit.allow(10.0) is None
    circuit.succeeded(10.0, second)
    assert circuit.state is CircuitState.CLOSED


def test_categories_are_counted_apart() -> None:
    circuit = Circuit(CircuitSettings(failures_max_by_category={Category.PROTOCOL: 1}))
    fail(circuit, 0.0, 0.0)
    fail(circuit, 0.0, 0.0, category=Category.TIMEOUT)
    assert circuit.state is CircuitState.CLOSED
    fail(circuit, 0.0, category=Category.PROTOCOL)
    assert circuit.state is CircuitState.OPEN


def test_one_bad_peer_does_not_affect_another() -> None:
    circuits = Circuits()
    fail(circuits.of(0.0, "bad"), 0.0, 0.0, 0.0)
    assert circuits.is_open(0.0, "bad")
    assert not circuits.is_open(0.0, "good")
    assert circuits.of(0.0, "good").allow(0.0) is not None
    assert circuits.statuses(0.0)["bad"].state is CircuitState.OPEN
    assert not circuits.is_open(10.0, "bad"), "selectors may try it again"


def test_circuits_are_bounded_and_forget_those_without_a_story_first() -> None:
    circuits = Circuits(CircuitSettings(destinations_max=3))
    fail(circuits.of(0.0, "a"), 0.0)
    circuits.of(0.0, "b")
    fail(circuits.of(0.0, "c"), 0.0)
    circuits.of(0.0, "d")
    assert sorted(circuits.statuses(0.0)) == ["a", "c", "d"]
    fail(circuits.of(0.0, "d"), 0.0)
    circuits.of(0.0, "e")
    assert sorted(circuits.statuses(0.0)) == ["c", "d", "e"]
    circuits.forget("e")
    assert len(circuits) == 2


def test_the_table_has_no_dead_end() -> None:
    assert set(TRANSITIONS) == set(CircuitState)
    assert all(TRANSITIONS.values())


@pytest.mark.parametrize("wrong", [{"failures_max": 0}, {"tests": 0}, {"open_s": 0.0}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        CircuitSettings(**wrong)  # type: ignore[arg-type]
