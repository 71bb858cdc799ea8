"""Two or more runs in one page: what changed between the first and the last, beyond noise, the
numbers of all, how they went from run to run, and each course on the same scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyperscale.metrics import totals
from hyperscale.metrics.compare import Change, Compared, Comparison, compare
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import Point, Results, Struct, WorkflowResult
from hyperscale.ui.compare import difference_text, value_text
from hyperscale.ui.html import numbers, scale
from hyperscale.ui.html.chart import Chart, Position, bar, line
from hyperscale.ui.html.document import document
from hyperscale.ui.html.embed import script_data
from hyperscale.ui.html.markup import Html, join, tag
from hyperscale.ui.html.scale import Scale
from hyperscale.ui.html.spread import merged
from hyperscale.ui.html.table import Cell, Column, number, table, words
from hyperscale.ui.html.timeline import side_by_side
from hyperscale.ui.html.verdict import judge

Run = tuple[str, Results]  # what it is called, usually its file

# Courses stand side by side; of more runs the first, the last and those before it.
_COURSES_MAX = 4
_TONES = {"better": "good", "same": "good", "worse": "bad", "not comparable": "warn"}
_TITLES = {
    "better": "Better",
    "same": "No change",
    "worse": "Worse",
    "not comparable": "Not comparable",
}
_PERCENTILES = (50.0, 95.0, 99.0)


class _Course(Struct):
    """What the script shows of a chart at the pointer."""

    series: list[Point]
    steps: tuple[str, ...] = ()


class _Courses(Struct):
    workflows: list[_Course]


def render_comparison_report(runs: Sequence[Run], tolerance: float = 0.05) -> str:
    """The text of an HTML file; `runs` are two or more, the oldest first."""
    (first, before), (last, after) = runs[0], runs[-1]
    compared = compare(before, after, tolerance=tolerance)
    title = f"{first} and {last}" if len(runs) == 2 else f"{first} to {last}, {len(runs)} runs"
    charted = _charted(runs)
    courses = [w for _, several in charted for _, w in several]
    return document(
        f"Comparison: {title}",
        tag(
            "header",
            tag("p", "Hyperscale comparison", class_="mark"),
            tag("h1", title),
        ),
        tag(
            "main",
            _banner(compared, len(runs)),
            _notes(compared),
            _all(runs),
            _trend(runs) if len(runs) > 2 else None,
            _changes(compared, first, last),
            _side_by_side(charted),
        ),
        data=script_data(
            "hyperscale-series", _Courses(workflows=[_Course(series=w.series) for w in courses])
        ),
    )


def _banner(compared: Comparison, runs: int) -> Html:
    tone = _TONES[compared.verdict]
    symbol = {"good": "✓", "bad": "✕", "warn": "!"}[tone]
    between = " between the first and the last" if runs > 2 else ""
    return tag(
        "section",
        tag("span", symbol, class_="symbol", aria_hidden="true"),
        tag("div", tag("h2", _TITLES[compared.verdict] + between), tag("p", compared.reason)),
        class_=f"verdict {tone}",
    )


def _notes(compared: Comparison) -> Html | None:
    remarks = [tag("li", tag("b", "note"), " ", note) for note in compared.notes]
    for what, names in (
        ("only in the first run", compared.only_before),
        ("only in the last run", compared.only_after),
    ):
        if names:
            remarks.append(tag("li", tag("b", what), " ", ", ".join(names)))
    return tag("ul", remarks, class_="notices") if remarks else None


def _all(runs: Sequence[Run]) -> Html:
    columns = [
        Column("Run", number=False),
        Column("Started", number=False),
        Column("Load", number=False, wide=True),
        Column("Verdict", number=False),
        Column("Requests"),
        Column("Rate"),
        Column("Failed"),
        *(Column(f"p{percent:g}") for percent in _PERCENTILES),
        Column("Max", wide=True),
    ]
    rows = [_run(place, name, results) for place, (name, results) in enumerate(runs, 1)]
    return tag(
        "section", tag("h2", "Runs"), table("Runs", columns, rows, sortable=True, kind="workflows")
    )


def _run(place: int, name: str, results: Results) -> list[Cell]:
    verdict = judge(results)
    service = _service(results)
    rate = totals.per_second(results.requests, results)
    tone = {"good": "good", "bad": "alarm"}.get(verdict.tone, "")
    latencies = [*service.percentiles(_PERCENTILES), service.high if service.count else 0.0]
    return [
        words(join([f"{place} · {name}", tag("small", results.name)]), f"{place:04d}"),
        words(results.started_at.replace("T", " ").split("+")[0].split(".")[0]),
        words("; ".join(workflow.load for workflow in results.workflows)),
        words(verdict.title, kind=tone),
        number(numbers.count(results.requests), results.requests),
        number(numbers.rate(rate), rate),
        number(
            numbers.share(results.failed, results.requests + results.unsent),
            results.failed_share,
            "alarm" if results.failed else "",
        ),
        *(
            number(numbers.milliseconds(value * 1000) if service.count else numbers.NONE, value)
            for value in latencies
        ),
    ]


def _service(results: Results) -> Histogram:
    return merged(step.service for workflow in results.workflows for step in workflow.steps)


# -- from run to run -----------------------------------------------------------------------------


def _trend(runs: Sequence[Run]) -> Html:
    rates = [totals.per_second(results.requests, results) for _, results in runs]
    latencies = [[s * 1000 for s in _service(r).percentiles(_PERCENTILES)] for _, r in runs]
    shares = [results.failed_share * 100 for _, results in runs]
    high = max((value for values in latencies for value in values), default=0.0)
    low = min((v for values in latencies for v in values if v > 0), default=high)
    latency_scale = scale.fitting(low, high) if high > 0 else scale.linear(0)
    by_kind = [
        (f"p{percent:g}", [values[place] for values in latencies])
        for place, percent in enumerate(_PERCENTILES)
    ]
    named = [f"{place} · {name}" for place, (name, _) in enumerate(runs, 1)]
    return tag(
        "section",
        tag("h2", "From run to run"),
        tag(
            "div",
            _trend_chart(
                "throughput", "Throughput", "requests per second of each run", named,
                scale.linear(max(rates)), numbers.short, [("requests", rates)], numbers.rate,
            ),
            _trend_chart(
                "latency", "Latency", "percentiles of each run", named,
                latency_scale, numbers.milliseconds, by_kind, numbers.milliseconds,
            ),
            class_="pair",
        ),
        _trend_chart(
            "trend", "Failed", "share of calls, in percent", named,
            scale.linear(max(shares)), numbers.short, [("failed", shares)],
            lambda percent: numbers.share(percent, 100),
        )
        if any(shares)
        else None,
    )  # fmt: skip


def _trend_chart(
    kind: str,
    title: str,
    unit: str,
    named: Sequence[str],
    y: Scale,
    y_label: Callable[[float], str],
    curves: Sequence[tuple[str, Sequence[float]]],
    told: Callable[[float], str],
) -> Html:
    """A place for each run, the value in its middle."""
    count = len(named)
    every = -(-count // 12)
    x = Scale(0, count, [place + 0.5 for place in range(0, count, every)])
    drawn: list[Html] = []
    for name, values in curves:
        points: list[Position] = [
            (x.position(place + 0.5), y.position(value)) for place, value in enumerate(values)
        ]
        drawn.append(line(points, name))
    for place, name in enumerate(named):
        said = [f"{curve}  {told(values[place])}" for curve, values in curves]
        tip = "\n".join([name, *said])
        drawn.append(bar(place / count, (place + 1) / count, 1.0, "hit", tip))
    return Chart(
        key=f"trend-{title.lower()}",
        title=title,
        unit=unit,
        description="; ".join(
            f"{name} from {told(values[0])} to {told(values[-1])}" for name, values in curves
        ),
        x=x,
        y=y,
        x_label=lambda place: f"{place + 0.5:.0f}",
        y_label=y_label,
        curves=drawn,
        legend=[(name, name) for name, _ in curves] if len(curves) > 1 else (),
        data={"data_kind": kind},
    ).render()


# -- what changed --------------------------------------------------------------------------------


def _changes(compared: Comparison, first: str, last: str) -> Html | None:
    if not compared.compared:
        return None
    columns = [
        Column("", number=False),
        Column("First"),
        Column("Last"),
        Column("Change"),
        Column("95 % interval", wide=True),
        Column("", number=False),
    ]
    rows = [row for scope in compared.compared for row in _scope(scope)]
    lead = f"From {first} to {last}; a change counts when it is beyond noise and {{}}."
    return tag(
        "section",
        tag("h2", "What changed"),
        tag("p", lead.format(numbers.percent(compared.tolerance)), class_="lead"),
        table("What changed", columns, rows, kind="changes"),
    )


def _scope(scope: Compared) -> list[list[Cell]]:
    heading = tag("b", scope.name) if scope.step else tag("b", f"{scope.name}, all steps")
    rows = [[words(heading), *[words("")] * 5]]
    return rows + [_change(change) for change in scope.changes]


def _change(change: Change) -> list[Cell]:
    points = change.unit == "share"
    tone = {"better": "good", "worse": "alarm"}.get(change.verdict, "")
    interval = " to ".join(difference_text(end, points=points) for end in (change.low, change.high))
    return [
        words({"error_share": "errors"}.get(change.metric, change.metric)),
        number(value_text(change.before, change.unit), change.before),
        number(value_text(change.after, change.unit), change.after),
        number(difference_text(change.change, points=points), change.change, tone),
        number(interval, change.low),
        words("" if change.verdict == "same" else change.verdict, kind=tone),
    ]


# -- side by side --------------------------------------------------------------------------------


def _charted(runs: Sequence[Run]) -> list[tuple[str, list[tuple[str, WorkflowResult]]]]:
    """By workflow, in the runs that have it."""
    shown = list(enumerate(runs, 1))
    if len(shown) > _COURSES_MAX:
        shown = [shown[0], *shown[1 - _COURSES_MAX :]]
    names = dict.fromkeys(w.name for _, (_, results) in shown for w in results.workflows)
    return [
        (
            name,
            [
                (f"{place} · {run}", workflow)
                for place, (run, results) in shown
                for workflow in results.workflows
                if workflow.name == name
            ],
        )
        for name in names
    ]


def _side_by_side(charted: Sequence[tuple[str, list[tuple[str, WorkflowResult]]]]) -> list[Html]:
    found, index = [], 0
    for name, several in charted:
        pairs = [tag("div", side_by_side(several, index), class_="pair runs")]
        found.append(tag("section", tag("h2", name), pairs))
        index += len(several)
    return found
