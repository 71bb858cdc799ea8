from __future__ import annotations

import pytest

from hyperscale.metrics import delta as wire
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.failures import KINDS_MAX, MESSAGE_MAX, SAMPLES_MAX
from hyperscale.metrics.recorder import (
    METRICS_MAX,
    NAMES_MAX,
    OTHER_NAME,
    RequestRecorder,
    WorkflowRecorder,
)
from hyperscale.metrics.results import FirstFailure
from hyperscale.workload.scope import Label

ROW = (10.0, 10.0, 10.004, 10.005, 0.0, 200, 100, 50)


@pytest.fixture
def recorder() -> WorkflowRecorder:
    return WorkflowRecorder(["login", "buy"], ["has token"], {"cart": "distribution"})


@pytest.fixture
def home(recorder) -> RequestRecorder:
    return recorder.steps["login"].of(Label("GET", "/"))


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
    recorder.steps["login"].of(Label("GET", "/"))
    recorder.steps["buy"].open(Label("GET", "/"))(ROW)
    recorder.steps["buy"].durations.append(0.006)
    delta = recorder.fold()
    assert [one.key.step for one in delta.requests] == ["buy"]
    assert [(step.name, step.runs) for step in delta.steps] == [("buy", 1)]


def test_response_times_travel_only_when_something_was_late(recorder, home):
    samples = home.samples
    samples.extend(ROW)
    assert recorder.fold().requests[0].response is None
    samples.extend(ROW)
    samples.extend((10.0, 10.0, 10.004, 10.005, 0.25, 200, 100, 50))
    step = recorder.fold().requests[0]
    assert step.service.high == pytest.approx(0.005)
    assert step.response.low == pytest.approx(0.005)
    assert step.response.high == pytest.approx(0.255)


def test_phases_are_write_wait_and_read_and_the_connection_when_there_was_one(recorder, home):
    home.samples.extend(ROW)
    home.connected(0.0, 0.002, 0.03)
    phases = recorder.fold().requests[0].phases
    assert set(phases) == {"write", "wait", "read", "connect", "tls"}
    assert phases["wait"].total == pytest.approx(0.004)
    assert phases["read"].total == pytest.approx(0.001)
    assert phases["tls"].total == pytest.approx(0.03)


def test_a_request_without_first_byte_waited_to_its_end(recorder, home):
    home.samples.extend((10.0, 10.0, 0.0, 40.0, 0.0, 0, 0, 50))
    step = recorder.fold().requests[0]
    assert step.phases["wait"].total == pytest.approx(30.0)
    assert step.phases["read"].total == 0.0
    assert step.statuses == {}


def test_a_client_without_phases_has_none(recorder):
    recorder.steps["login"].open(Label("", "login", kind="custom"))(ROW)
    assert recorder.fold().requests[0].phases == {}


def test_an_unanswered_failure_counts_without_a_latency(recorder, home):
    home.failure("refused", "ConnectionRefusedError", "nobody listens", sent=False)
    home.failure("cancelled", "", "given up")
    home.samples.extend((*ROW[:5], 503, 10, 50))
    home.failure("status", "503", "503 Service Unavailable", timed=True)
    folded = recorder.fold().requests[0]
    assert (folded.count, folded.failed, folded.unsent, folded.service.count) == (2, 3, 1, 1)
    assert folded.statuses == {503: 1}


def test_errors_of_any_variety_fit_in_a_fixed_space(recorder, home):
    for number in range(10_000):
        home.failure("exception", f"Error{number}", "x" * 1000)
    errors = recorder.fold().requests[0].errors
    assert len(errors) == KINDS_MAX + 1
    assert sum(error.count for error in errors) == 10_000
    assert errors[0].detail == "other"
    assert all(len(error.samples) <= SAMPLES_MAX for error in errors)
    assert all(len(message) == MESSAGE_MAX for error in errors for message in error.samples)


def test_sample_messages_travel_once_per_run(recorder, home):
    told: list[str] = []
    for number in range(5):
        home.failure("timeout", "read", f"message {number}")
        told += recorder.fold().requests[0].errors[0].samples
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


def test_discard_forgets_the_warm_up(recorder, home):
    extend = home.samples.extend
    home.failure("refused", "", "never sent", sent=False)
    recorder.steps["login"].failed("exception", "KeyError", "warm-up")
    recorder.steps["login"].skip("warm-up")
    extend(ROW)
    home.failure("status", "503", "warm-up", timed=True)
    home.connected(0.1, 0.1, 0.1)
    recorder.check("has token", "warm-up")
    recorder.metric("cart", 1)
    recorder.iterations.append(0.1)
    recorder.lag(0.1)
    recorder.dropped = recorder.interrupted = 3
    recorder.discard("warmup")
    recorder.discard("warmup")
    told = recorder.fold()
    assert told.unmeasured == {"warmup": 1}
    assert not told.requests + told.steps
    assert recorder.fold() is None
    extend(ROW)
    home.failure("status", "503", "measured", timed=True)
    folded = recorder.fold().requests[0]
    assert (folded.count, folded.failed) == (1, 1)
    assert folded.errors[0].samples == ["measured"]
    assert "connect" not in folded.phases


def test_a_delta_survives_the_wire_and_is_small(recorder, home):
    for number in range(7000):
        home.samples.extend((0.0, 0.0, 0.001, 0.001 + number % 100 * 1e-5, 0.0, 200, 100, 50))
    recorder.lag(0.002)
    recorder.cpu, recorder.rss_mb, recorder.vus = 0.5, 80.0, 64
    delta = recorder.fold()
    data = wire.encode(delta)
    assert wire.decode(data) == delta
    assert len(data) < 3000


def test_cpu_time_is_told_once(recorder):
    recorder.cpu_s += 0.25
    assert recorder.fold().cpu_s == 0.25
    assert recorder.fold() is None


def test_labels_with_the_same_words_share_their_numbers(recorder):
    step = recorder.steps["login"]
    for label in (Label("GET", "/"), Label("GET", "/"), Label("POST", "/"), Label("GET", "/", T)):
        step.open(label)(ROW)
    told = {(one.key.method, one.key.tags): one.count for one in recorder.fold().requests}
    assert told == {("GET", ()): 2, ("POST", ()): 1, ("GET", T): 1}


T = (("kind", "api"),)


def test_beyond_the_most_names_requests_are_told_as_one_but_for_reserved_names():
    recorder = WorkflowRecorder(["login"], reserved={"/kept"})
    step = recorder.steps["login"]
    for number in range(NAMES_MAX + 30):
        step.open(Label("GET", f"/{number}"))(ROW)
        step.notes[next(reversed(step.notes))](ROW)
    step.open(Label("GET", "/kept"))(ROW)
    step.open(Label("GET", "/0"))(ROW)
    told = {one.key.name: one.count for one in recorder.fold().requests}
    assert len(told) == NAMES_MAX + 2
    assert (told[OTHER_NAME], told["/kept"], told["/0"]) == (60, 1, 3)


def test_requests_told_by_status_are_all_of_them():
    recorder = WorkflowRecorder(["login"], by_status=True)
    home = recorder.steps["login"].of(Label("GET", "/"))
    home.connected(0.0, 0.002, 0.0)
    for status in (200, 503, 503):
        home.samples.extend((*ROW[:5], status, 10, 50))
    home.failure("status", "503", "503 Service Unavailable", timed=True)
    home.failure("status", "503", "503 Service Unavailable", timed=True)
    requests = recorder.fold().requests
    assert {(one.key.tags, one.count, one.failed) for one in requests} == {
        ((("status", "200"),), 1, 0),
        ((("status", "503"),), 2, 2),
    }
    assert sum("connect" in one.phases for one in requests) == 1


def test_the_first_failure_of_a_kind_is_told_once(recorder, home):
    made = []

    def first() -> FirstFailure:
        made.append(FirstFailure(at_s=len(made)))
        return made[-1]

    told = []
    for _ in range(3):
        home.failure("status", "503", "no", first, timed=True)
        told.append(recorder.fold().requests[0].errors[0].first)
    assert told == [made[0], None, None]
    assert len(made) == 1


def test_runs_of_a_step(recorder):
    step = recorder.steps["buy"]
    step.durations.extend((0.1, 0.2))
    step.interrupted = 1
    step.failed("exception", "KeyError", "KeyError: 'price'")
    step.failed()
    step.skip("not today")
    (told,) = recorder.fold().steps
    assert (told.runs, told.failed, told.interrupted, told.duration.count) == (3, 2, 1, 2)
    assert told.skips == {"not today": 1}
    assert [(error.detail, error.count) for error in told.errors] == [("KeyError", 1)]
    assert recorder.fold() is None


def test_beyond_the_most_tags_a_metric_is_told_without_them():
    recorder = WorkflowRecorder(["login"])
    aggregate = WorkflowAggregate("W", ["login"])
    for number in range(METRICS_MAX + 40):
        recorder.metric("paid", 1, "count", (("user", str(number)),))
    aggregate.apply(0, recorder.fold())
    metrics = aggregate.freeze().metrics
    assert len(metrics) == METRICS_MAX + 1
    assert sum(metric.value for metric in metrics) == METRICS_MAX + 40
    assert metrics[-1].tags == {}
