"""Which view is chosen, what the line view says, what the keys do, what a frame holds."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Mark, Results, StepResult, WorkflowResult
from hyperscale.ui.ci import CiLines, CiView, progress
from hyperscale.ui.keys import decode
from hyperscale.ui.live import palette
from hyperscale.ui.live.charts import Charts
from hyperscale.ui.live.controls import Controls
from hyperscale.ui.live.layout import compose
from hyperscale.ui.live.pages import Pages
from hyperscale.ui.live.palette import text_width
from hyperscale.ui.live.scene import Scene
from hyperscale.ui.live.view import LiveView
from hyperscale.ui.mode import NoView, choose_mode, open_view
from hyperscale.ui.window import RateWindow
from tests.unit.ui.fake_run import FakeRun
from tests.unit.ui.golden import assert_golden
from tests.unit.ui.sample import empty_results, sample_results


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def frame(scene: Scene, columns: int, rows: int) -> list[str]:
    lines = compose(scene, Charts(), columns, rows)
    return ["".join(segment.text for segment in line) for line in lines]


@pytest.mark.parametrize(
    ("requested", "environ", "mode"),
    [
        (None, {"TERM": "xterm"}, "full"),
        ("full", {"TERM": "xterm"}, "full"),
        ("full", {"TERM": "dumb"}, "ci"),
        ("full", {}, "ci"),
        (None, {"TERM": "xterm", "CI": "true"}, "ci"),
        (None, {"TERM": "xterm", "CI": "false"}, "full"),
        ("full", {"TERM": "xterm", "CI": "true"}, "full"),
        ("none", {"TERM": "xterm"}, "none"),
    ],
)
def test_mode_on_a_terminal(requested: str | None, environ: dict[str, str], mode: str) -> None:
    assert choose_mode(requested, FakeTerminal(), environ) == mode


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_full_without_a_terminal_is_ci(stream: io.StringIO | None) -> None:
    assert choose_mode("full", stream, {"TERM": "xterm"}) == "ci"


def test_unknown_mode_is_named() -> None:
    with pytest.raises(BadInput, match="'fancy'"):
        choose_mode("fancy", None)


def test_none_writes_nothing() -> None:
    stream = io.StringIO()
    view = open_view("none", stream)
    assert isinstance(view, NoView)
    asyncio.run(view.run(FakeRun(snapshots=2)))
    assert stream.getvalue() == ""


def test_ci_has_no_escapes_and_ends_with_the_run() -> None:
    stream = FakeTerminal()
    asyncio.run(CiView(stream, interval_s=0.01).run(FakeRun(snapshots=4)))
    written = stream.getvalue()
    assert "\x1b" not in written
    assert "Checkout  started: 64 VUs for 5m" in written
    assert "Checkout  finished: 4,800,000 requests, 1,846 failed (12 never sent)" in written
    assert re.search(
        r"^05:01  Search  100%  vus=37  rate=\S+  p95=\S+  requests=300000", written, re.M
    )


@pytest.mark.parametrize("mode", ["ci", "full"])
def test_the_end_is_shown_when_it_comes(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperscale.ui.ci._POLL_S", 1e6)
    looked = asyncio.Event()
    run = FakeRun(on_snapshot=lambda _: looked.set())

    async def watch(view: CiView | LiveView) -> None:
        watching = asyncio.create_task(view.run(run))
        async with asyncio.timeout(20):
            await looked.wait()
            run.now.state = "finished"
            view.over()
            await watching

    with (tmp_path / "screen").open("w") as stream:
        asyncio.run(
            watch(
                CiView(stream, interval_s=1e6)
                if mode == "ci"
                else LiveView(stream, frames_per_s=1e-6)
            )
        )


def test_ci_lines_are_periodic_and_news_come_at_once() -> None:
    lines, results = CiLines(5.0), sample_results("running")
    results.workflows.pop()
    results.saturation, results.warnings, results.thresholds = "", [], []
    workflow = results.workflows[0]
    assert len(lines.due(results, 100.0)) == 4  # two marks, the start, the first progress
    assert lines.due(results, 101.0) == []
    workflow.marks.append(Mark(at_s=7.0, text="+3 VUs"))
    assert lines.due(results, 102.0) == ["05:01  Checkout  at 7s: +3 VUs"]
    results.warnings.append("a\nwarning")
    assert lines.due(results, 103.0) == ["05:01  warning: a warning"]
    assert len(lines.due(results, 105.0)) == 1


def test_ci_tells_of_a_lost_worker_when_it_happens() -> None:
    lines, results = CiLines(1e9), sample_results("running")
    lines.due(results, 1.0)
    results.lost.append("worker w7 lost at 41 s: 12 of 64 VUs")
    assert lines.due(results, 1.5) == ["05:01  lost: worker w7 lost at 41 s: 12 of 64 VUs"]
    assert lines.due(results, 2.0) == []


def test_ci_tells_of_a_crossed_threshold_once_and_when_it_holds_again() -> None:
    lines, results = CiLines(5.0), sample_results("running")
    failed = results.thresholds[1]
    said = "05:01  threshold crossed: http_req_failed rate<0.0001 rate=0.036%"
    assert said in lines.due(results, 100.0)
    assert said not in lines.due(results, 105.0)
    failed.passed = True
    assert lines.due(results, 106.0) == []  # close to its limit it would change all the time
    again = lines.due(results, 110.0)
    assert "05:01  threshold holds again: http_req_failed rate<0.0001" in again


def test_ci_counts_calls_that_were_never_sent_apart() -> None:
    (line,) = [line for line in CiLines().due(sample_results("running"), 1.0) if "vus=64" in line]
    assert line.endswith("requests=4800000  failed=1846 (0.04%)  unsent=12")


def test_ci_says_why_a_workflow_failed() -> None:
    assert CiLines().due(empty_results(), 1.0) == [
        "00:00  Checkout  failed: shop.example does not resolve"
    ]


def test_ci_says_stopping_and_leaves_a_pause_to_its_mark() -> None:
    lines, run = CiLines(1e9), FakeRun()
    lines.due(run.results(), 1.0)
    run.pause()
    assert lines.due(run.results(), 2.0) == []
    run.resume()
    assert lines.due(run.results(), 3.0) == []
    run.stop()
    assert "05:01  Checkout  stopping" in lines.due(run.results(), 4.0)


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"p+-q\t", ["p", "+", "-", "q", "\t"]),
        (b"\x1b[A\x1b[1;5Cq", ["q"]),
        (b"\x1bOPq", ["q"]),
        (b"\x1bq", []),
        (b"\x1b", []),
        ("é".encode(), []),
    ],
)
def test_keys_without_escape_sequences(data: bytes, keys: list[str]) -> None:
    assert decode(data) == keys


@given(st.binary())
def test_any_bytes_decode(data: bytes) -> None:
    assert all(len(key) == 1 for key in decode(data))


def pressed(run: FakeRun, keys: str) -> list[str]:
    controls = Controls(run, Pages())
    return [controls.press(key) for key in keys]


def test_plus_and_minus_move_a_tenth_and_at_least_one() -> None:
    run = FakeRun()
    run.now.workflows.pop()
    assert pressed(run, "+") == ["adding 6 VUs"]
    run.now.workflows[0].vus = 3
    assert pressed(run, "-") == ["removing 1 VU"]
    run.now.workflows[0].vus = 1
    assert pressed(run, "-") == ["1 VU is the least; q stops the run"]
    assert run.calls == ["scale Checkout +6", "scale Checkout -1"]


def test_plus_and_minus_act_on_the_workflow_that_is_shown() -> None:
    run = FakeRun()
    assert pressed(run, "1+2+") == ["", "adding 6 VUs", "", "raising the rate by 10 %"]
    assert run.calls == ["scale Checkout +6", "rate Search 1.1"]


def test_plus_and_minus_act_on_each_workflow_when_all_are_shown() -> None:
    run = FakeRun()
    assert pressed(run, "+-") == ["10 % more of 2 workflows", "10 % less of 2 workflows"]
    assert run.calls == [
        "scale Checkout +6", "rate Search 1.1", "scale Checkout -7", "rate Search 0.9",
    ]  # fmt: skip
    run.now.workflows[0].vus = 1
    assert pressed(run, "-") == ["Search: lowering the rate by 10 %"]


def test_q_stops_and_then_kills() -> None:
    run = FakeRun()
    pressed(run, "qq")
    assert run.calls == ["stop", "kill"]


def test_keys_do_nothing_while_stopping() -> None:
    run = FakeRun()
    pressed(run, "qp+-x")
    assert run.calls == ["stop"]


@pytest.mark.parametrize(("columns", "rows"), [(120, 40), (80, 24), (40, 12)])
@pytest.mark.parametrize("index", [None, 0, 1])
def test_frames(columns: int, rows: int, index: int | None) -> None:
    results = sample_results("running")
    for workflow in results.workflows:
        workflow.elapsed_s = 212.0
        workflow.series = workflow.series[:213]
    rates = {"Checkout": 16_210.0, "Search": 1_012.0}
    scene = Scene(results, index=index, recent_rates=rates, message="adding 6 VUs")
    lines = [line.rstrip() for line in frame(scene, columns, rows)]
    page = "all" if index is None else index + 1
    assert_golden(f"frame_{columns}x{rows}_{page}.txt", "\n".join(lines) + "\n")


def styles(lines: list[list[Segment]], words: str) -> set[Style | None]:
    return {segment.style for line in lines for segment in line if words in segment.text}


def test_thresholds_are_shown_and_red_when_crossed() -> None:
    results = sample_results("running")
    lines = compose(Scene(results), Charts(), 120, 40)
    assert styles(lines, "http_req_failed rate<0.0001 · rate=0.036%") == {palette.BAD}
    assert styles(lines, "http_req_duration p(95)<500 · p(95)=84.1ms") == {palette.PLAIN}


def test_thresholds_of_other_workflows_are_on_their_pages() -> None:
    results = sample_results("running")
    results.thresholds[0].scope = "Checkout: http_req_duration"
    results.thresholds[1].scope = "Search: http_req_failed"
    first, second = ("\n".join(frame(Scene(results, index=i), 120, 40)) for i in (0, 1))
    assert "Checkout: http_req_duration" in first
    assert "Search: http_req_failed" not in first
    assert "Search: http_req_failed" in second


def test_a_lost_worker_is_told_while_the_run_goes_on() -> None:
    results = sample_results("running")
    results.lost = ["worker w7 lost at 41 s: 12 of 64 VUs"]
    for index in (None, 0):
        assert "✗ worker w7 lost at 41 s: 12 of 64 VUs" in frame(Scene(results, index), 80, 24)


def test_requests_by_name_are_shown_where_there_is_room() -> None:
    results = sample_results("running")
    high, low = ("\n".join(frame(Scene(results, index=0), 120, rows)) for rows in (40, 20))
    assert "  GET /items/{id} " in high
    assert "/items/{id}" not in low


SCENES: list[Callable[[], Results]] = [
    lambda: sample_results("running"), lambda: sample_results("preparing"), empty_results, Results,
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 220), st.integers(1, 70), st.sampled_from(SCENES), st.none() | st.just(0))
def test_any_size_gives_a_frame_of_that_size(
    columns: int, rows: int, make: Callable[[], Results], index: int | None
) -> None:
    lines = compose(Scene(make(), index=index), Charts(), columns, rows)
    assert len(lines) == rows
    assert all(text_width(line) <= columns for line in lines)


def test_wide_characters_and_many_steps_stay_in_the_frame() -> None:
    steps = [StepResult(name=f"注文を確認する{i}" * 4, workflow="日本") for i in range(60)]
    results = Results(state="running", workflows=[WorkflowResult(name="日本" * 40, steps=steps)])
    lines = compose(Scene(results), Charts(), 80, 24)
    assert max(map(text_width, lines)) <= 80
    assert any("more steps" in segment.text for line in lines for segment in line)


def test_plot_gives_way_before_the_errors_and_the_errors_before_the_steps() -> None:
    results = sample_results("running")
    tall, middle, low = (
        "\n".join(frame(Scene(results, index=0), 80, rows)) for rows in (26, 18, 12)
    )
    assert "requests/s" in tall
    assert "\nerrors" in tall
    assert "requests/s" not in middle
    assert "\nerrors" in middle
    assert "\nerrors" not in low
    assert "add_to_cart" in low


def test_pages_turn_from_all_workflows_to_each_and_back() -> None:
    pages, results = Pages(), sample_results("running")
    shown = [pages.index(results)]
    for _ in range(3):
        pages.next(results)
        shown.append(pages.index(results))
    assert shown == [None, 0, 1, None]
    pages.choose(2)
    assert pages.index(results) == 1
    pages.choose(7)
    assert pages.index(results) is None  # there is no seventh
    results.workflows.pop()
    assert Pages().index(results) == 0  # with one workflow there is nothing to choose


def test_rate_of_the_last_seconds() -> None:
    window = RateWindow(3.0)
    assert window.per_second == 0.0
    for second in range(10):
        window.add(float(second), second * 100)
    for second in range(10, 15):
        window.add(float(second), 900 + (second - 9) * 500)
    assert window.per_second == 500.0
    window.add(15.0, 7)  # a warm-up was forgotten
    assert window.per_second == 0.0


def test_a_load_that_stands_still_has_no_rate() -> None:
    workflow = sample_results("running").workflows[0]
    window = RateWindow(3.0)
    window.add(0.0, workflow.requests)
    assert "rate=0/s" not in progress(workflow, window)  # nothing to compare: the rate so far
    window.add(5.0, workflow.requests)
    assert "rate=0/s" in progress(workflow, window)
