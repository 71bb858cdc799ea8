"""What scopes mean in a workflow, and the sentences for those that mean nothing."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.code_words import CodeWords
from hyperscale.workload.selectors import Selector
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import METRICS, Threshold, parse_threshold

NAMES = Names(
    "Checkout",
    ("login", "pay"),
    ("welcomed",),
    {"sold": "count", "size": "distribution"},
    others=("login", "pay", "welcomed", "prepare", "on_start"),
    groups={"pay": "buying"},
    tags={"kind": ("api", "page"), "team": ("shop",)},
    code=CodeWords(
        frozenset({"page", "ttfb", "get", "lookup"}), {"ttfb": "distribution", "broken": "count"}
    ),
)
AT_RUN_TIME = msgspec.structs.replace(NAMES, code=CodeWords(names_metrics=True))


def bound(text: str, names: Names = NAMES) -> Threshold:
    return bind(parse_threshold(text), names)


@pytest.mark.parametrize(
    ("scope", "metric", "selector"),
    [
        ("login", "http_req_duration", Selector(step="login")),
        ("Checkout.login", "http_req_duration", Selector(step="login")),
        ("prepare", "http_req_duration", Selector(step="prepare")),
        ("on_start", "http_req_duration", Selector(step="on_start")),
        ("pay{name:/pay/{id}}", "http_req_duration", Selector(step="pay", name="/pay/{id}")),
        ("http_req_response", "http_req_response", Selector()),
        ("http_req_response{login}", "http_req_response", Selector(step="login")),
        ("http_req_duration{step:pay}", "http_req_duration", Selector(step="pay")),
        ("http_req_duration{step:welcomed}", "http_req_duration", Selector(step="welcomed")),
        ("http_req_duration{workflow:Checkout}", "http_req_duration", Selector()),
        ("http_req_duration{group:buying}", "http_req_duration", Selector(group="buying")),
        (
            "http_req_duration{step:pay,group:buying}",
            "http_req_duration",
            Selector(step="pay", group="buying"),
        ),
        ("http_req_duration{dc:eu}", "http_req_duration", Selector(dc="eu")),
        ("http_req_duration{status:200}", "http_req_duration", Selector(status="200")),
        ("http_req_waiting{method:get}", "http_req_waiting", Selector(method="GET")),
        ("http_req_waiting{method:lookup}", "http_req_waiting", Selector(method="lookup")),
        ("http_req_duration{kind:http}", "http_req_duration", Selector(kind="http")),
        ("http_req_duration{kind:api}", "http_req_duration", Selector(tags={"kind": "api"})),
        (
            "http_req_duration{ kind:api, team:shop }",
            "http_req_duration",
            Selector(tags={"kind": "api", "team": "shop"}),
        ),
        ("http_req_duration{page:home}", "http_req_duration", Selector(tags={"page": "home"})),
        ("step_duration{step:pay}", "step_duration", Selector(step="pay")),
        ("step_duration{kind:page}", "step_duration", Selector(tags={"kind": "page"})),
        ("group_duration{group:buying}", "group_duration", Selector(group="buying")),
        ("size", "size", Selector()),
        ("Checkout.size", "size", Selector()),
        ("ttfb{page:home}", "ttfb", Selector(tags={"page": "home"})),
    ],
)
def test_what_a_scope_means(scope: str, metric: str, selector: Selector) -> None:
    threshold = bound(f"{scope}: p(95)<5")
    assert (threshold.metric, threshold.selector, threshold.family) == (metric, selector, "trend")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(threshold), type=Threshold) == threshold


def test_counting_a_step_counts_its_requests() -> None:
    counted = bound("login: count>5")
    assert (counted.metric, counted.selector) == ("http_reqs", Selector(step="login"))
    failures = bound("pay{status:500}: count<5")
    assert (failures.metric, failures.selector) == (
        "http_reqs",
        Selector(step="pay", status="500"),
    )


def test_a_check_is_judged_by_its_name_or_by_the_key() -> None:
    for scope in ("welcomed", "Checkout.welcomed", "checks{check:welcomed}"):
        threshold = bound(f"{scope}: rate>0.9")
        assert (threshold.metric, threshold.selector) == ("checks", Selector(check="welcomed"))


def test_the_workflow_is_not_said_twice() -> None:
    assert bound("Checkout.login: avg<5").scope == "login"
    assert bound("http_reqs{ workflow:Checkout, step:pay }: count<5").scope == "http_reqs{step:pay}"


def test_metrics_made_in_code_have_the_kind_that_made_them() -> None:
    assert bound("ttfb: p(95)<5").family == "trend"
    assert bound("broken: count<1").family == "counter"
    with pytest.raises(BadInput, match="asks for the count of ttfb, which has avg, min, med"):
        bound("ttfb: count<1")


def test_a_name_made_when_the_code_runs_may_be_any() -> None:
    threshold = bound(
        "whatever{page:home}: rate<5%",
        msgspec.structs.replace(NAMES, code=CodeWords(frozenset({"page"}), names_metrics=True)),
    )
    assert (threshold.metric, threshold.family, threshold.value) == ("whatever", None, 0.05)
    assert bound("http_reqs: count<5", AT_RUN_TIME).family == "counter"
    with pytest.raises(BadInput, match="selects step:logn"):
        bound("http_reqs{step:logn}: count<5", AT_RUN_TIME)


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        (
            "logn: avg<5",
            "threshold 'avg<5' judges 'logn', which is no metric, step or check",
            "did you mean 'login'?",
        ),
        (
            "http_req_duraton: avg<5",
            "threshold 'avg<5' judges 'http_req_duraton', which is no metric, step or check",
            "did you mean 'http_req_duration'?",
        ),
        (
            "tfb: avg<5",
            "threshold 'avg<5' judges 'tfb', which is no metric, step or check",
            "did you mean 'ttfb'?",
        ),
        (
            "Cart.login: avg<5",
            "threshold 'avg<5' judges 'Cart.login', which is no metric, step or check",
            "did you mean 'login'?",
        ),
        (
            "http_req_failed{logn}: rate<5",
            "threshold 'rate<5' selects step:logn, but Checkout has no such step",
            "did you mean 'login'?",
        ),
        (
            "group_duration{group:buyin}: avg<5",
            "threshold 'avg<5' selects group:buyin, but Checkout has no such group",
            "did you mean 'buying'?",
        ),
        (
            "http_reqs{workflow:Chekout}: count<5",
            "threshold 'count<5' selects workflow:Chekout, but belongs to Checkout",
            "did you mean 'Checkout'?",
        ),
        (
            "checks{check:welcmed}: rate>0.9",
            "threshold 'rate>0.9' selects check:welcmed, but Checkout has no such check",
            "did you mean 'welcomed'?",
        ),
        (
            "http_reqs{method:GTE}: count<5",
            "threshold 'count<5' selects method:GTE, but Checkout has no such method",
            "did you mean 'GET'?",
        ),
        (
            "http_reqs{status:5xx}: count<5",
            "threshold 'count<5' selects status:5xx, which is no HTTP status",
            "write it like status:503",
        ),
        (
            "http_reqs{kind:apy}: count<5",
            "threshold 'count<5' selects kind:apy, but nothing in Checkout has that tag",
            "did you mean 'api'?",
        ),
        (
            "http_reqs{staus:500}: count<5",
            "threshold 'count<5' selects by 'staus', which is no tag of Checkout",
            "did you mean 'status'?",
        ),
        (
            "http_reqs{colour:red}: count<5",
            "threshold 'count<5' selects by 'colour', which is no tag of Checkout",
            "give tags={...} to the workflow, to a step or to a call",
        ),
        (
            "ttfb{colour:red}: avg<5",
            "threshold 'avg<5' selects by 'colour', which is no tag of Checkout",
            "give tags={...} to the workflow, to a step or to a call",
        ),
        (
            "iterations{login}: count<5",
            "threshold 'count<5' selects by 'step', by which iterations is not told",
            "it can be selected by workflow, dc",
        ),
        (
            "step_duration{name:/pay}: avg<5",
            "threshold 'avg<5' selects by 'name', by which step_duration is not told",
            "it can be selected by workflow, dc, step, group, kind",
        ),
        (
            "http_reqs{step:login,group:buying}: count<5",
            "threshold 'count<5' selects the step 'login' in the group 'buying', where it is not",
            None,
        ),
        (
            "login{step:pay}: avg<5",
            "threshold 'avg<5' selects by 'step' within the step 'login'",
            None,
        ),
        ("checks: avg<5", "threshold 'avg<5' asks for the avg of checks, which has rate", None),
        (
            "http_reqs: p(95)<5",
            "threshold 'p(95)<5' asks for the p of http_reqs, which has count, rate",
            None,
        ),
        (
            "http_reqs: count<5s",
            "threshold 'count<5s' has the unit 's', which does not fit http_reqs",
            None,
        ),
        (
            "http_req_duration: avg<5%",
            "threshold 'avg<5%' has the unit '%', which does not fit http_req_duration",
            None,
        ),
        ("size: avg<5ms", "threshold 'avg<5ms' has the unit 'ms', which does not fit size", None),
    ],
)
def test_scopes_that_mean_nothing(text: str, sentence: str, hint: str | None) -> None:
    with pytest.raises(BadInput) as caught:
        bound(text)
    assert caught.value.message == sentence
    assert caught.value.hint == hint if hint is not None else caught.value.hint


def test_a_workflow_without_groups_says_so() -> None:
    with pytest.raises(BadInput, match="has no such group") as caught:
        bound("http_reqs{group:buying}: count<5", Names("Shop", ("login",)))
    assert caught.value.hint == "no step of it has a group"


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_can_be_judged(metric: str) -> None:
    word = {"trend": "avg", "rate": "rate", "counter": "count", "gauge": "value"}
    assert bound(f"{metric}: {word[METRICS[metric].family]}<5").metric == metric
