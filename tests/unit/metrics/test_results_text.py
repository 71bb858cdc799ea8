"""Results as notebooks, data frames and failed assertions show them."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import pytest

from hyperscale.errors import BadInput
from hyperscale.metrics.results import (
    Distribution,
    ErrorCount,
    FirstFailure,
    RequestResult,
    Results,
    StepResult,
    ThresholdResult,
    WorkflowResult,
    decode,
    encode,
)


def shop() -> Results:
    latency = Distribution(
        count=99, p50_ms=1.25, p95_ms=412.0, p99_ms=800.0, max_ms=1234.5, buckets=[7], counts=[99]
    )
    view = StepResult(
        name="view",
        workflow="Shop",
        count=1100,
        failed=41,
        rate=110.0,
        service=latency,
        tags={"kind": "api"},
        errors=[
            ErrorCount(outcome="status", detail="503", count=9),
            ErrorCount(
                outcome="exception",
                detail="KeyError",
                count=32,
                samples=["KeyError: '<price>'"],
                first=FirstFailure(where="shop.py:31 in view"),
            ),
        ],
        requests=[
            RequestResult(name="/items/{id}", step="view", workflow="Shop", count=1000),
            RequestResult(name="/cart", step="view", workflow="Shop", count=100, failed=41),
        ],
    )
    return Results(
        name="shop",
        elapsed_s=10.04,
        exit_code=99,
        workflows=[
            WorkflowResult(name="Shop", steps=[view, StepResult(name="idle", workflow="Shop")])
        ],
        thresholds=[
            ThresholdResult(
                expression="p(95)<300",
                scope="http_req_duration",
                passed=False,
                actual=412.0,
                actual_text="p(95)=412ms",
            ),
            ThresholdResult(expression="rate>0.9", scope="checks", passed=True, actual=1.0),
            ThresholdResult(expression="p(9)<3", scope="idle", passed=False, actual=None),
        ],
        saturation="The generator was the bottleneck.",
        warnings=["Look again."],
    )


def test_the_repr_is_one_line_with_what_decided_the_verdict() -> None:
    assert repr(shop()) == (
        "<Results: shop failed (exit 99); 1,100 requests, 41 failed, 10.0 s; "
        "crossed http_req_duration 'p(95)<300' p(95)=412ms; crossed idle 'p(9)<3' nothing to judge>"
    )
    cut = Results(passed=True, exit_code=0, cut_reason="stopped by its test")
    assert repr(cut) == "<Results: run passed; 0 requests, 0 failed, 0.0 s; stopped by its test>"


def test_a_histogram_does_not_fill_the_screen() -> None:
    assert repr(Distribution(count=2, buckets=[1], counts=[2])).endswith("max_ms=0.0)")
    assert "skips" not in repr(StepResult(name="idle", workflow="Shop"))


def test_the_summary_as_text() -> None:
    assert shop().summary().splitlines()[1:] == [
        "",
        "  ✗ http_req_duration 'p(95)<300' p(95)=412ms",
        "  ✓ checks 'rate>0.9'",
        "  ✗ idle 'p(9)<3' nothing to judge",
        "",
        "  step       requests  failed  p50 ms  p95 ms  p99 ms    max ms  req/s",
        "  Shop.view     1,100      41    1.25  412.00  800.00  1,234.50  110.0",
        "  Shop.idle         0       0       -       -       -         -    0.0",
        "",
        "  32 × Shop.view  KeyError: '<price>' shop.py:31 in view",
        "  9 × Shop.view  status 503",
        "",
        "The generator was the bottleneck.",
        "Look again.",
    ]
    assert Results(name="none").summary().count("\n") == 1


def test_a_notebook_gets_a_table_in_which_text_stays_text() -> None:
    page = ElementTree.fromstring(f"<div>{shop()._repr_html_()}</div>")

    cells = [[cell.text for cell in row] for row in page.iter("tr")]
    assert cells[0][:3] == ["step", "requests", "failed"]
    assert cells[1][:4] == ["Shop.view", "1,100", "41", "1.25"]
    shown = " ".join(page.itertext())
    assert "KeyError: '<price>'" in shown
    assert "✗ http_req_duration 'p(95)<300'" in shown


def test_a_data_frame_has_a_row_for_each_name_of_requests() -> None:
    frame = decode(encode(shop())).to_dataframe()

    assert list(frame["step"]) == ["view", "view", "idle"]
    assert list(frame["request"]) == ["/items/{id}", "/cart", ""]
    assert frame.groupby("step")["count"].sum()["view"] == 1100
    assert frame.loc[1, "failed"] == 41


def test_a_step_without_names_is_its_own_row() -> None:
    results = shop()
    results.workflows[0].steps[0].requests = []
    row = results.to_dataframe().iloc[0]
    assert (row["count"], row["service_p95_ms"], row["tags"]) == (1100, 412.0, "kind=api")


def test_pandas_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BadInput, match="needs pandas") as refused:
        shop().to_dataframe()
    assert refused.value.hint == "pip install pandas"
