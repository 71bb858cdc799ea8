"""The table of a comparison, for the terminal and for the page of a CI run."""

from __future__ import annotations

from hyperscale.metrics.compare import Change, Compared, Comparison
from hyperscale.ui.compare import markdown_comparison, render_comparison
from hyperscale.ui.output import Paint


def change(**values: object) -> Change:
    fields = {
        "metric": "p99",
        "unit": "ms",
        "before": 138.0,
        "after": 260.2,
        "change": 0.885,
        "low": 0.53,
        "high": 1.32,
        "p_value": 0.0001,
        "verdict": "worse",
    }
    return Change(**{**fields, **values})  # type: ignore[arg-type]


def comparison() -> Comparison:
    same = change(
        metric="throughput", unit="/s", after=138.0, change=0.0, low=-1e-9, high=0, verdict="same"
    )
    errors = change(
        metric="error_share",
        unit="share",
        before=0.0156,
        after=0.0474,
        change=0.0318,
        low=0.029,
        high=0.0348,
    )
    return Comparison(
        compared=[
            Compared(workflow="Shop", step="", changes=[same, errors], verdict="worse"),
            Compared(workflow="Shop", step="pay", changes=[change()], verdict="worse"),
            Compared(workflow="Shop", step="login", changes=[same]),
        ],
        only_before=["Shop.old"],
        only_after=["Shop.new\x1b[2J"],
        notes=["Shop had another load."],
        tolerance=0.05,
        verdict="worse",
        exit_code=99,
        reason="Worse beyond noise: Shop.pay p99 +88.5%.",
    )


def test_the_table_shows_what_changed_and_ends_with_the_verdict() -> None:
    shown = render_comparison(comparison(), before="main.json", after="branch.json")
    lines = shown.splitlines()
    assert lines[:2] == ["before  main.json", "after   branch.json"]
    assert "  throughput    138/s   138/s       0.0%" in shown
    assert ["p99", "138ms", "260ms", "+88.5%", "+53.0%", "to", "+132.0%", "worse"] in [
        line.split() for line in lines
    ]
    assert "+3.18 pp" in shown
    assert "No change: Shop.login" in lines
    assert "Only in main.json: Shop.old" in lines
    assert "! Shop had another load." in lines
    assert lines[-1] == "✗ Worse beyond noise: Shop.pay p99 +88.5%."
    assert "\x1b" not in shown


def test_all_rows_on_request() -> None:
    shown = render_comparison(comparison(), before="a", after="b", all_rows=True)
    assert "\nShop.login\n" in shown
    assert "No change" not in shown


def test_colour_only_when_asked_for() -> None:
    shown = render_comparison(comparison(), before="a", after="b", paint=Paint(True))
    assert "\x1b[31m" in shown


def test_changes_without_measure() -> None:
    result = comparison()
    result.compared[1].changes = [change(change=41.0, low=5.0, high=1e21)]
    shown = render_comparison(result, before="a", after="b")
    assert "×42" in shown
    assert "+500.0% to no limit" in shown


def test_nothing_in_common() -> None:
    result = Comparison(
        compared=[],
        only_before=["A.x"],
        only_after=["B.x"],
        notes=[],
        tolerance=0.05,
        verdict="not comparable",
        reason="The two runs have no step with requests in common.",
    )
    shown = render_comparison(result, before="a", after="b")
    assert shown.endswith("! The two runs have no step with requests in common.\n")


def test_better_is_good_news() -> None:
    result = comparison()
    result.verdict, result.reason = "better", "Better beyond noise."
    assert render_comparison(result, before="a", after="b").endswith("✓ Better beyond noise.\n")


def test_markdown_begins_with_the_verdict_and_keeps_its_table_whole() -> None:
    result = comparison()
    result.compared[1].step = "pay|now"
    shown = markdown_comparison(result, before="main.json", after="branch.json")
    assert shown.splitlines() == [
        "**✗ Worse beyond noise: Shop.pay p99 +88.5%.**",
        "",
        "|  | before | after | change | 95% interval |  |",
        "|---|--:|--:|--:|--:|---|",
        "| **Shop** |  |  |  |  |  |",
        "| throughput | 138/s | 138/s | 0.0% | 0.0% to 0.0% |  |",
        "| errors | 1.56% | 4.74% | +3.18 pp | +2.90 pp to +3.48 pp | **worse** |",
        r"| **Shop.pay\|now** |  |  |  |  |  |",
        "| p99 | 138ms | 260ms | +88.5% | +53.0% to +132.0% | **worse** |",
        "",
        "No change: Shop.login",
        "",
        "Only in main.json: Shop.old",
        "",
        "Only in branch.json: Shop.new [2J",
        "",
        "Shop had another load.",
    ]
    assert "| **Shop.login** |" in markdown_comparison(result, before="a", after="b", all_rows=True)
