"""What thresholds may refer to although it is only in code, from the class to the plan."""

from __future__ import annotations

from typing import Any

import pytest

from hyperscale import Workflow, action, check, step
from hyperscale.errors import BadInput
from hyperscale.testing import URL, HTTPResponse
from hyperscale.workload.code_words import words_of
from hyperscale.workload.plan import Overrides, plan_workflow

SHARED_TAGS = {"section": "shop"}


def note_section(user: Any) -> None:
    user.metrics.gauge("queue").add(3, tags={"line": "first"})


def made_at_run_time(self: Any, page: str) -> None:
    self.metrics.trend(f"ttfb_{page}").add(1)


def named_by_keyword(self: Any) -> None:
    self.metrics.counter(name="sold").add(1)


def with_a_rate_of_its_own(self: Any) -> float:
    return float(self.rate * 2)


def recursive(self: Any, depth: int) -> None:
    self.metrics.rate("deep").add(depth > 0)
    [recursive(self, depth - 1) for _ in range(depth)]


def test_metrics_are_found_by_the_call_that_makes_them() -> None:
    assert words_of([note_section]).metrics == {"queue": "sample"}
    assert words_of([named_by_keyword]).metrics == {"sold": "count"}
    assert words_of([recursive]).metrics == {"deep": "rate"}
    assert not words_of([note_section, named_by_keyword]).names_metrics


def test_a_name_that_is_put_together_is_not_known() -> None:
    found = words_of([made_at_run_time])
    assert found.names_metrics
    assert found.metrics == {}


def test_an_attribute_that_is_called_rate_is_no_metric() -> None:
    assert words_of([with_a_rate_of_its_own]) == words_of([])


def test_words_are_those_of_the_code_and_of_what_it_uses() -> None:
    async def inner() -> Any:
        async def deepest() -> dict[str, str]:
            return {"deep": "1", "deeper": "2"} | SHARED_TAGS

        return await deepest()

    words = words_of([inner, {"constant": 1}, staticmethod(note_section), property(note_section)])
    assert {"deep", "deeper", "section", "constant", "line"} <= words.words


def test_what_is_not_code_is_left_alone() -> None:
    class Awkward:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    assert words_of([Awkward(), 5, None, Awkward]).words == frozenset()


class Shop(Workflow):
    tags = {"team": "cart"}
    thresholds = {
        "http_req_duration{kind:api}": "p(95)<300",
        "http_req_duration{team:cart}": "p(95)<300",
        "http_req_duration{page:anything}": "p(95)<300",
        "http_req_duration{section:shop}": "p(95)<300",
        "step_duration{step:checkout}": "p(95)<2000",
        "group_duration{group:buying}": "p(95)<2000",
        "http_reqs{step:prepare}": "count<5",
        "checks{check:paid}": "rate>0.9",
        "ttfb{page:home}": "p(95)<5",
        "queue": "value<5",
    }

    @step(tags={"kind": "api"})
    async def view(self, url: URL = "/") -> HTTPResponse:
        self.metrics.trend("ttfb").add(1.0, tags={"page": "home"})
        note_section(self)
        return await self.client.http.get(url, tags={"page": "home"})

    @step(group="buying")
    async def checkout(self, url: URL = "/") -> HTTPResponse:
        return await self.client.http.get(url, tags=SHARED_TAGS)

    @check("checkout")
    async def paid(self, checkout: HTTPResponse) -> Exception | None:
        return None

    @action()
    async def prepare(self) -> None:
        pass


def test_a_class_may_refer_to_all_that_is_in_it() -> None:
    plan = plan_workflow(Shop)
    assert [threshold.scope for threshold in plan.thresholds] == list(Shop.thresholds)
    assert plan.thresholds[-1].family == "gauge"


@pytest.mark.parametrize(
    ("scope", "sentence"),
    [
        ("http_req_duration{kind:apy}", "selects kind:apy, but nothing in Wrong has that tag"),
        ("http_req_duration{team:crt}", "selects team:crt"),
        ("http_req_duration{pages:home}", "selects by 'pages', which is no tag of Wrong"),
        ("http_req_duration{step:viw}", "selects step:viw, but Wrong has no such step"),
        ("group_duration{group:buyin}", "selects group:buyin, but Wrong has no such group"),
        ("ttbf", "judges 'ttbf', which is no metric, step or check"),
    ],
)
def test_a_typo_is_found_when_the_class_is_made(scope: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=f"^Wrong: threshold 'p[(]95[)]<5' {sentence}") as caught:
        type("Wrong", (Shop,), {"thresholds": {scope: "p(95)<5"}})
    assert caught.value.hint.startswith("did you mean")


def test_tags_of_the_command_line_can_be_judged() -> None:
    overrides = Overrides(tags={"build": "7"}, thresholds=["http_reqs{build:7}: count>1"])
    assert plan_workflow(Shop, overrides).thresholds[-1].selector.tags == {"build": "7"}


def test_metrics_named_when_the_code_runs_are_accepted() -> None:
    class Paged(Shop):
        thresholds = ("ttfb_home: p(95)<5",)

        @step()
        async def home(self, url: URL = "/") -> HTTPResponse:
            made_at_run_time(self, "home")
            return await self.client.http.get(url)

    (threshold,) = plan_workflow(Paged).thresholds
    assert (threshold.metric, threshold.family) == ("ttfb_home", None)
