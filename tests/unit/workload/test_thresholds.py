from __future__ import annotations

import msgspec
import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import (
    EXAMPLE,
    Threshold,
    parse_threshold,
    parse_thresholds,
    splits_by_status,
)

NAMES = Names(
    "Checkout", ("login", "pay"), ("welcomed",), {"sold": "count", "size": "distribution"}
)


@pytest.mark.parametrize(
    ("text", "scope", "aggregation", "percentile", "operator", "value"),
    [
        ("p(95)<500", "http_req_duration", "p", 95, "<", 500),
        ("p(99.9) <= 1.5s", "http_req_duration", "p", 99.9, "<=", 1500),
        ("http_req_duration: avg<200", "http_req_duration", "avg", 0, "<", 200),
        ("http_req_duration: med<2m", "http_req_duration", "med", 0, "<", 120_000),
        ("http_req_failed: rate<0.01", "http_req_failed", "rate", 0, "<", 0.01),
        ("http_req_failed: rate<1%", "http_req_failed", "rate", 0, "<", 0.01),
        ("checks: rate>0.99", "checks", "rate", 0, ">", 0.99),
        ("http_reqs: count>1000", "http_reqs", "count", 0, ">", 1000),
        ("http_reqs:rate>=50", "http_reqs", "rate", 0, ">=", 50),
        ("vus: value==10", "vus", "value", 0, "==", 10),
        ("dropped_iterations: count!=1", "dropped_iterations", "count", 0, "!=", 1),
        ("sold: count>5", "sold", "count", 0, ">", 5),
        ("size: max<2048", "size", "max", 0, "<", 2048),
        ("login: min>1ms", "login", "min", 0, ">", 1),
    ],
)
def test_expressions(
    text: str, scope: str, aggregation: str, percentile: float, operator: str, value: float
) -> None:
    bound = bind(parse_threshold(text), NAMES)
    assert (bound.scope, bound.aggregation, bound.percentile) == (scope, aggregation, percentile)
    assert (bound.operator, bound.value) == (operator, pytest.approx(value))
    assert msgspec.json.decode(msgspec.json.encode(bound), type=Threshold) == bound


@pytest.mark.parametrize(
    ("text", "for_s", "abort", "delay_s"),
    [
        ("avg<5", 0, False, 0),
        ("avg<5 for 10s", 10, False, 0),
        ("avg<5ms for 1m30s abort", 90, True, 0),
        ("avg<5 abort after 500ms", 0, True, 0.5),
        ("login: p(99)<250ms for 10s abort after 5s", 10, True, 5),
    ],
)
def test_suffixes(text: str, for_s: float, abort: bool, delay_s: float) -> None:
    parsed = parse_threshold(text)
    assert (parsed.for_s, parsed.abort, parsed.delay_s) == (for_s, abort, delay_s)


def test_the_expression_is_kept_as_written_without_its_scope() -> None:
    parsed = parse_threshold("login: p(99)<250ms for 10s")
    assert (parsed.scope, parsed.expression) == ("login", "p(99)<250ms for 10s")


def test_lists_and_dicts() -> None:
    assert parse_thresholds(None) == []
    assert parse_thresholds("avg<5") == parse_thresholds(["avg<5"])
    assert parse_thresholds({"login": "avg<5", "checks": ["rate>0.9", "rate<1"]}) == [
        parse_threshold("login: avg<5"),
        parse_threshold("checks: rate>0.9"),
        parse_threshold("checks: rate<1"),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("p(95<500", r"is not understood at 'p\(95<500': expected avg, min, med"),
        ("p(101)<500", r"at 'p\(101\)<500': expected a percentile from 0 to 100"),
        ("p(95)500", "at '500': expected one of <"),
        ("p(95)<", "at its end: expected a number"),
        ("p(95)<fast", "at 'fast': expected a number"),
        ("p(95)<5 seconds", "at 'seconds': expected the end"),
        ("avg<5 for", "at its end: expected a duration such as 10s"),
        ("avg<5 stop", "at 'stop': expected the end, 'for 10s' or 'abort'"),
        ("avg<5 abort later", "at 'later': expected the end or 'after 5s'"),
        ("", "at its end: expected avg"),
        ("login:", "at its end: expected avg"),
        ("rate<0.01", "does not say what its rate is of"),
        ("mean<5", "at 'mean<5': expected avg"),
    ],
)
def test_what_is_wrong_is_shown_with_a_working_example(text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        parse_threshold(text)
    assert repr(text) in caught.value.message
    assert EXAMPLE in caught.value.hint or "http_req_failed" in caught.value.hint


def test_a_bad_duration_is_named_with_its_threshold() -> None:
    with pytest.raises(BadInput, match="'avg<5 for 10x': duration '10x' is not a duration"):
        parse_threshold("avg<5 for 10x")


@pytest.mark.parametrize("value", [5, [5], {"login": 5}, {"login": [5]}])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(BadInput, match="threshold"):
        parse_thresholds(value)


def test_braces_that_do_not_close_are_shown() -> None:
    with pytest.raises(BadInput, match=r"at '{login: rate<1%': expected braces that close"):
        parse_threshold("http_req_failed{login: rate<1%")
    with pytest.raises(BadInput, match=r"at 'rate<1%': expected a colon after the scope"):
        parse_threshold("http_req_failed{login} rate<1%")
    with pytest.raises(BadInput, match=r"the braces of 'http_reqs{login' do not close"):
        parse_threshold("count>5", "http_reqs{login")


def test_rows_are_split_by_status_only_for_what_needs_it() -> None:
    def splits(text: str) -> bool:
        return splits_by_status([bind(parse_threshold(text), NAMES)])

    assert splits("http_req_duration{status:200}: p(95)<5")
    assert splits("http_req_failed{status:404}: rate<1%")
    assert not splits("http_reqs{status:500}: count<10")
    assert not splits("http_req_duration: p(95)<5")


def test_holds() -> None:
    assert parse_threshold("avg<5").holds(4.9)
    assert not parse_threshold("avg<5").holds(5)
    assert parse_threshold("avg!=5").holds(4)
    assert parse_threshold("avg>=5").holds(5)
