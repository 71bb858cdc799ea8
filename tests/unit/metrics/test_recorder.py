from __future__ import annotations

import pytest

from hyperscale.metrics import delta as wire
from hyperscale.metrics.failures import KINDS_MAX, MESSAGE_MAX, SAMPLES_MAX
from hyperscale.metrics.recorder import WorkflowRecorder

ROW = (10.0, 10.0, 10.004, 10.005, 0.0, 200, 100, 50)


@pytest.fixture
def recorder() -> WorkflowRecorder:
    return WorkflowRecorder(["login", "buy"], ["has token"], {"cart": "distribution"})


def test_nothing_new_folds_to_nothing(recorder):
    assert recorder.fold() is None
    recorder.vus = 5
    assert recorder.fold().vus == 5
    assert recorder.fold() is None


def test_sequence_numbers_count_what_was_told(recorder):
    seqs = []
    for vus in (1, 1, 2):
        recorder.vus = vus
        delta = recorder.fold()
        seqs.append(delta and delta.seq)
    assert seqs == [1, None, 2]


def test_only_steps_with_news_travel(recorder):
    recorder.steps["buy"].samples.extend(ROW)
    delta = recorder.fold()
    assert [step.name for step in delta.steps] == ["buy"]


def test_response_times_travel_only_when_something_was_late(recorder):
    samples = recorder.steps["login"].samples
    samples.extend(ROW)
    assert recorder.fold().steps[0].response is None
    samples.extend(ROW)
    samples.extend((10.0, 10.0, 10.004, 10.005, 0.25, 200, 100, 50))
    step = recorder.fold().steps[0]
    assert step.service.high == pytest.approx(0.005)
    assert step.response.low == pytest.approx(0.005)
    assert step.response.high == pytest.approx(0.255)


def test_phases_are_write_wait_and_read_and_the_connection_when_there_was_one(recorder):
    step = recorder.steps["login"]
    step.samples.extend(ROW)
    step.connected(0.0, 0.002, 0.03)
    phases = recorder.fold().steps[0].phases
    assert set(phases) == {"write", "wait", "read", "connect", "tls"}
    assert phases["wait"].total == pytest.approx(0.004)
    assert phases["read"].total == pytest.approx(0.001)
    assert phases["tls"].total == pytest.approx(0.03)


def test_a_request_without_first_byte_waited_to_its_end(recorder):
    recorder.steps["login"].samples.extend((10.0, 10.0, 0.0, 40.0, 0.0, 0, 0, 50))
    step = recorder.fold().steps[0]
    assert step.phases["wait"].total == pytest.approx(30.0)
    assert step.phases["read"].total == 0.0
    assert step.statuses == {}


def test_a_client_without_phases_has_none(recorder):
    recorder.steps["login"].phases = False
    recorder.steps["login"].samples.extend(ROW)
    assert recorder.fold().steps[0].phases == {}


def test_an_unanswered_failure_counts_without_a_latency(recorder):
    step = recorder.steps["login"]
    step.failure("refused", "ConnectionRefusedError", "nobody listens", answered=False)
    step.samples.extend((*ROW[:5], 503, 10, 50))
    step.failure("status", "503", "503 Service Unavailable", answered=True)
    folded = recorder.fold().steps[0]
    assert (folded.count, folded.failed, folded.service.count) == (2, 2, 1)
    assert folded.statuses == {503: 1}


def test_errors_of_any_variety_fit_in_a_fixed_space(recorder):
    step = recorder.steps["login"]
    for number in range(10_000):
        step.failure("exception", f"Error{number}", "x" * 1000, answered=False)
    errors = recorder.fold().steps[0].errors
    assert len(errors) == KINDS_MAX + 1
    assert sum(error.count for error in errors) == 10_000
    assert errors[0].detail == "other"
    assert all(len(error.samples) <= SAMPLES_MAX for error in errors)
    assert all(len(message) == MESSAGE_MAX for error in errors for message in error.samples)


def test_sample_messages_travel_once_per_run(recorder):
    step = recorder.steps["login"]
    told: list[str] = []
    for number in range(5):
        step.failure("timeout", "read", f"message {number}", answered=False)
        told += recorder.fold().steps[0].errors[0].samples
    assert told == ["message 0", "message 1", "message 2"]


def test_checks_and_metrics(recorder):
    recorder.check("has token", None)
    recorder.check("has token", "no token")
    recorder.metric("cart", 3)
    recorder.metric("cart", float("nan"))
    recorder.metric("cart", -7.5)
    delta = recorder.fold()
    check, metric = delta.checks[0], delta.metrics[0]
    assert (check.passed, check.failed, check.samples) == (1, 1, ["no token"])
    assert (metric.values.count, metric.values.total, metric.last) == (2, -4.5, -7.5)
    assert recorder.fold() is None


def test_discard_forgets_the_warm_up(recorder):
    step = recorder.steps["login"]
    extend = step.samples.extend
    extend(ROW)
    step.failure("status", "503", "warm-up", answered=True)
    step.connected(0.1, 0.1, 0.1)
    recorder.check("has token", "warm-up")
    recorder.metric("cart", 1)
    recorder.iterations.append(0.1)
    recorder.lag(0.1)
    recorder.dropped = recorder.interrupted = 3
    recorder.discard()
    assert recorder.fold() is None
    extend(ROW)
    step.failure("status", "503", "measured", answered=True)
    folded = recorder.fold().steps[0]
    assert (folded.count, folded.failed) == (1, 1)
    assert folded.errors[0].samples == ["measured"]
    assert "connect" not in folded.phases


def test_a_delta_survives_the_wire_and_is_small(recorder):
    step = recorder.steps["login"]
    for number in range(7000):
        step.samples.extend((0.0, 0.0, 0.001, 0.001 + number % 100 * 1e-5, 0.0, 200, 100, 50))
    recorder.lag(0.002)
    recorder.cpu, recorder.rss_mb, recorder.vus = 0.5, 80.0, 64
    delta = recorder.fold()
    data = wire.encode(delta)
    assert wire.decode(data) == delta
    assert len(data) < 3000
