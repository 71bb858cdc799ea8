"""A job's picture: grows with its updates, never goes back, repeats change nothing."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hyperscale import Workflow, step
from hyperscale.engine.results import Course, aggregate_of, assemble
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.results import encode
from hyperscale.nodes.client.picture import Picture
from hyperscale.nodes.protocol.jobs import (
    DatacenterView,
    JobUpdate,
    JobView,
    Outline,
    Snapshot,
    Window,
    WorkflowDone,
    WorkflowView,
)
from hyperscale.testing import URL, HTTPResponse
from hyperscale.workload.facts import test_facts as facts_of_test
from hyperscale.workload.plan import plan_test
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import parse_threshold


class Quick(Workflow):
    vus = 5
    duration = "1s"

    @step()
    async def get(self, url: URL = "http://127.0.0.1:1/") -> HTTPResponse:
        return await self.client.http.get(url)


(FACTS,) = facts_of_test(plan_test([Quick]))
OUTLINE = Outline(workflows=(FACTS,), name="q", tags={"a": "b"}, command="hyperscale run q.py")


class Manager:
    """What one manager knows, and how it tells it."""

    def __init__(self, requests: int = 0) -> None:
        self.aggregate = aggregate_of(FACTS)
        self.index = 0
        if requests:
            self.window(requests)

    def window(self, requests: int, failed: int = 0) -> JobUpdate:
        self.index += 1
        delta = Delta(
            seq=self.index,
            vus=5,
            requests=[RequestDelta(RequestKey("get"), count=requests, failed=failed)],
        )
        at_s = self.aggregate.elapsed_s + 0.1
        self.aggregate.apply(0, delta, at_s)
        window = Window(workflow="Quick", index=self.index, elapsed_s=at_s, delta=delta, workers=2)
        return JobUpdate(windows=(window,))

    def snapshot(self) -> JobUpdate:
        snapshot = Snapshot(
            workflow="Quick",
            index=self.index,
            elapsed_s=self.aggregate.elapsed_s,
            state=self.aggregate.export(),
        )
        return JobUpdate(snapshots=(snapshot,))


def view(status: str, state: str = "running", **more: object) -> JobUpdate:
    workflow = WorkflowView(name="Quick", state=state, lifecycle=state, cores=4)
    known = {"job_id": "j", "name": "q", "status": status, "workflows": (workflow,), **more}
    return JobUpdate(view=msgspec.convert(known, JobView, from_attributes=True))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("window"), st.integers(0, 50)),
            st.tuples(st.just("snapshot"), st.just(0)),
            st.tuples(st.just("again"), st.just(0)),
            st.tuples(st.just("new manager"), st.integers(0, 200)),
        ),
        max_size=40,
    )
)
def test_totals_never_go_back_and_are_those_of_the_last_manager_in_the_end(
    events: list[tuple[str, int]],
) -> None:
    picture = Picture(OUTLINE)
    manager, told = Manager(), JobUpdate()
    shown = 0
    for what, number in events:
        if what == "window":
            told = manager.window(number)
        elif what == "snapshot":
            told = manager.snapshot()
        elif what == "new manager":
            manager = Manager(number)
            told = manager.snapshot()
        news = picture.apply(told)
        if what == "again":
            assert news.progress == []
        requests = picture.results(1.0).requests
        assert requests >= shown
        shown = requests
    picture.apply(manager.window(10_000))
    assert picture.results(1.0).requests >= manager.aggregate.requests - 10_000
    if shown <= manager.aggregate.requests:
        assert picture.results(1.0).requests == manager.aggregate.requests


def test_a_snapshot_and_the_windows_after_it_are_the_whole() -> None:
    manager = Manager()
    for _ in range(3):
        manager.window(10, failed=1)
    picture = Picture()
    picture.apply(JobUpdate(outline=OUTLINE))
    picture.apply(manager.snapshot())
    news = picture.apply(manager.window(5))
    assert [(p.requests, p.failed) for p in news.progress] == [(35, 3)]
    results = picture.results(2.5)
    assert (results.requests, results.failed, results.elapsed_s) == (35, 3, 2.5)
    assert results.workflows[0].vus == 5
    assert (results.name, results.tags) == ("q", {"a": "b"})
    assert results.environment.command == "hyperscale run q.py"


def test_thresholds_are_told_while_the_job_runs() -> None:
    def judged(text: str) -> Outline:
        threshold = bind(parse_threshold(text), Names("Quick", ("get",)))
        return Outline(workflows=(msgspec.structs.replace(FACTS, thresholds=(threshold,)),))

    manager = Manager()
    manager.window(10, failed=1)
    for text, passed in (("rate<20%", True), ("rate<5%", False), ("rate<5% for 1s", True)):
        picture = Picture(judged(f"http_req_failed{{get}}: {text}"))
        picture.apply(manager.snapshot())
        assert picture.results(0.9).thresholds == []
        (threshold,) = picture.results(1.0).thresholds
        assert (threshold.passed, threshold.actual_text) == (passed, "rate=10.00%")
    picture.apply(manager.window(0))
    assert picture.results(1.9).thresholds == [threshold], "looked at once a second"


def test_states_are_those_a_view_knows() -> None:
    picture = Picture(OUTLINE)
    assert picture.results(0).state == "preparing"
    for status, paused, expected in (
        ("queued", False, "preparing"),
        ("running", False, "running"),
        ("running", True, "paused"),
        ("completing", False, "running"),
        ("cancelling", False, "stopping"),
    ):
        picture.apply(view(status, paused=paused))
        results = picture.results(0)
        assert results.state == expected
        expected_of_workflow = "running" if expected == "preparing" else expected
        assert results.workflows[0].state == expected_of_workflow
        assert results.workflows[0].cores == 4
    picture.apply(view("running", "completed"))
    assert picture.results(0).workflows[0].state == "finished"


def test_what_is_waited_for_and_lost_is_told_once() -> None:
    picture = Picture(OUTLINE)
    for _ in range(3):
        picture.apply(view("queued", reason="8 of 16 cores are free", position=2))
    assert picture.results(0).warnings == [
        "the job waits at place 2 of the queue: 8 of 16 cores are free"
    ]
    picture.apply(view("running", lost=("worker w7 lost at 41 s",), coverage=0.973))
    results = picture.results(0)
    assert (results.coverage, results.lost) == (0.973, ["worker w7 lost at 41 s"])


def test_marks_are_on_the_timeline_once() -> None:
    picture = Picture(OUTLINE)
    mark = ("Quick", 0.5, "scaled to 12")
    for _ in range(2):
        picture.apply(JobUpdate(marks=(mark,)))
        picture.apply(Manager(3).snapshot())
    assert [m.text for m in picture.results(0).workflows[0].marks] == ["scaled to 12"]


def test_the_end_is_what_the_managers_say() -> None:
    manager = Manager(10)
    picture = Picture(OUTLINE)
    picture.apply(Manager(50).snapshot())
    ended = manager.aggregate.freeze()
    done = WorkflowDone(workflow="Quick", status="completed", result=msgspec.json.encode(ended))
    assert picture.apply(JobUpdate(done=(done,))).done == [done]
    assert picture.apply(JobUpdate(done=(done,))).done == []
    assert picture.results(0).requests == 10
    final = assemble(Course(state="finished"), [manager.aggregate], final=True)
    picture.apply(view("completed", "completed"))
    assert picture.ended_as == ""
    picture.apply(JobUpdate(results=encode(final), final=True))
    assert picture.over
    assert picture.ended_as == "completed"
    assert picture.results(0).requests == 10
    assert picture.results(0).state == "finished"


def test_what_comes_with_the_end_is_told_as_progress_before_it() -> None:
    manager, picture = Manager(), Picture(OUTLINE)
    shown = picture.apply(manager.window(84, 4)).progress[-1]
    assert (shown.requests, shown.failed) == (84, 4)
    manager.window(10, 1)  # of the end itself: no window tells it
    result = msgspec.json.encode(manager.aggregate.freeze())
    done = WorkflowDone(workflow="Quick", status="completed", result=result)
    news = picture.apply(JobUpdate(done=(done,)))
    (last,) = news.progress
    assert (last.requests, last.failed) == (94, 5)
    assert [(one.count, one.failed) for one in last.window.delta.requests] == [(10, 1)]
    assert (last.since_s, last.window.elapsed_s) == (0.1, 0.2)
    assert not picture.apply(JobUpdate(done=(done,))).progress


def test_an_end_that_knows_less_than_was_shown_is_no_progress() -> None:
    manager, picture = Manager(), Picture(OUTLINE)
    picture.apply(manager.window(84))
    less = msgspec.json.encode(Manager(80).aggregate.freeze())
    done = WorkflowDone(workflow="Quick", status="completed", result=less)
    assert picture.apply(JobUpdate(done=(done,))).progress == []


def test_windows_behind_what_is_shown_are_told_as_such() -> None:
    """Who passes windows on must not add them to what is more already."""
    before, after = Manager(requests=10), Manager(requests=4)
    picture = Picture(OUTLINE)
    assert picture.apply(before.snapshot()).replaced
    assert not picture.apply(after.snapshot()).replaced
    news = picture.apply(after.window(3))
    assert [one.held for one in news.progress] == [True]
    assert not news.replaced
    news = picture.apply(after.window(5))
    assert [(one.held, one.requests) for one in news.progress] == [(False, 12)]
    assert news.replaced
    assert not picture.apply(after.window(1)).replaced


def test_a_datacenter_does_not_lose_what_was_shown_of_it() -> None:
    """Another gate has taken the job over, and does not know all yet."""
    picture = Picture(OUTLINE)

    def told(requests: int, status: str = "running") -> int:
        one = DatacenterView(name="eu", status=status, requests=requests)
        view = JobView(job_id="j", name="q", status="running", datacenters=(one,), together=one)
        picture.apply(JobUpdate(view=view))
        (shown,) = picture.results(1.0).datacenters
        return shown.requests

    assert [told(100), told(40), told(120)] == [100, 100, 120]
    assert told(110, "lost") == 110
