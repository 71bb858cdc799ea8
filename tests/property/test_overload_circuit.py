"""A circuit obeys its table under any order of requests and results."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.overload import Category, Circuit, CircuitSettings
from hyperscale.cluster.overload.circuit import TRANSITIONS, CircuitState, Ticket

events = st.one_of(
    st.tuples(st.just("allow"), st.just(0)),
    st.tuples(st.just("succeed"), st.integers(0, 50)),
    st.tuples(st.just("fail"), st.integers(0, 50)),
    st.tuples(st.just("wait"), st.integers(0, 150)),
)


@settings(max_examples=300)
@given(
    st.integers(1, 4), st.integers(1, 3), st.lists(events, max_size=150), st.sampled_from(Category)
)
def test_only_moves_of_the_table(
    failures_max: int, tests: int, history: list[tuple[str, int]], category: Category
) -> None:
    config = CircuitSettings(failures_max=failures_max, tests=tests)
    circuit = Circuit(config)
    now, opened_at = 0.0, 0.0
    tickets: list[Ticket] = []
    for kind, number in history:
        before, opened_before = circuit.state, circuit.opened_count
        if kind == "wait":
            now += number / 10
        elif kind == "allow":
            ticket = circuit.allow(now)
            if ticket is not None:
                assert circuit.state is not CircuitState.OPEN
                tickets.append(ticket)
            else:
                assert circuit.state is not CircuitState.CLOSED, (
                    "a closed circuit lets everything pass"
                )
                assert circuit.state is CircuitState.HALF_OPEN or now < opened_at + config.open_s
        elif tickets:
            ticket = tickets.pop(number % len(tickets))
            if kind == "succeed":
                circuit.succeeded(now, ticket)
            else:
                circuit.failed(now, ticket, category)
        after = circuit.state
        if before is not after:
            assert after in TRANSITIONS[before].values()
        if circuit.opened_count > opened_before:
            opened_at = now
        if before is CircuitState.OPEN and after is CircuitState.HALF_OPEN:
            assert now >= opened_at + config.open_s
        status = circuit.status(now)
        assert status.retry_after_s >= 0
        assert all(count < failures_max for count in status.failures.values())


@given(st.lists(st.floats(0.0, 20.0), min_size=1, max_size=40))
def test_closed_opens_exactly_on_three_in_thirty_seconds(pauses: list[float]) -> None:
    circuit = Circuit()
    now, times = 0.0, []
    for pause in pauses:
        now += pause
        ticket = circuit.allow(now)
        assert ticket is not None
        circuit.failed(now, ticket)
        times.append(now)
        expected = len(times) >= 3 and times[-1] - times[-3] <= 30.0
        assert (circuit.state is CircuitState.OPEN) == expected
        if expected:
            break
