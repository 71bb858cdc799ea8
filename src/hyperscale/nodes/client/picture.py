"""What is known of a job, put together from its updates.

A snapshot takes the place of what was known of a workflow, windows add to it. After a change of
managers a snapshot may know less than was shown already, because workers have not told the new
one everything yet: it is held back until it has caught up, so totals never go backwards. The end
is not computed here: it comes from the managers, whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from hyperscale.engine.results import Course, aggregate_of, assemble, judges_of, watch
from hyperscale.engine.thresholds import Judge, Standing
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.results import (
    DatacenterResult,
    Distribution,
    Environment,
    Mark,
    Results,
    State,
    WorkflowResult,
    decode,
)
from hyperscale.nodes.client.pushes import FINAL
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
from hyperscale.workload.facts import WorkflowFacts

NOTES_MAX = 20
WATCH_S = 1.0  # thresholds are looked at this often, as managers do
_ALL = 0  # all workers together count as one core here
_WORKFLOW_STATES: dict[str, State] = {"pending": "preparing", "running": "running"}
_JOB_STATES: dict[str, State] = {
    "submitted": "preparing",
    "queued": "preparing",
    "dispatching": "preparing",
    "prepared": "preparing",
    "running": "running",
    "completing": "running",
    "cancelling": "stopping",
}


@dataclass(slots=True)
class Progress:
    """A window that was new, and the workflow's totals with it."""

    window: Window
    since_s: float
    requests: int
    failed: int
    held: bool = False  # not shown yet: what was known before is more


@dataclass(slots=True)
class News:
    """What an update told that was not known before."""

    view: JobView | None = None
    progress: list[Progress] = field(default_factory=list)
    done: list[WorkflowDone] = field(default_factory=list)
    replaced: bool = False
    """What was known of a workflow is another thing now; windows do not lead there."""


class Picture:
    def __init__(self, outline: Outline | None = None) -> None:
        self.outline = outline
        self.view: JobView | None = None
        self.done: dict[str, WorkflowDone] = {}
        self.final: Results | None = None
        self.over = False
        self._workflows: dict[str, _Workflow] = {}
        self._notes: dict[str, None] = {}
        self._judges: list[Judge] = []
        self._watched_s = 0.0
        if outline is not None:
            self._begin(outline)

    def apply(self, update: JobUpdate) -> News:
        news = News()
        if update.outline is not None and self.outline is None:
            self.outline = update.outline
            self._begin(update.outline)
        if update.view is not None:
            self._look(update.view)
            news.view = update.view
        for snapshot in update.snapshots:
            if snapshot.workflow in self._workflows:
                news.replaced |= self._workflows[snapshot.workflow].snapshot(snapshot)
        for window in update.windows:
            workflow = self._workflows.get(window.workflow)
            progress = workflow.window(window) if workflow is not None else None
            if progress is not None:
                news.progress.append(progress)
                news.replaced |= workflow is not None and workflow.has_caught_up
        for name, at_s, text in update.marks:
            if name in self._workflows:
                self._workflows[name].mark(at_s, text)
        for done in update.done:
            if done.workflow not in self.done:
                self.done[done.workflow] = done
                news.done.append(done)
                if done.workflow in self._workflows:
                    last = self._workflows[done.workflow].end(done)
                    news.progress += [] if last is None else [last]
        if update.final:
            self.over = True
            self.final = decode(update.results) if update.results else None
        return news

    def results(self, elapsed_s: float) -> Results:
        """All so far, for a view; the end as the managers told it."""
        if self.final is not None:
            return self.final
        course = self._course(elapsed_s)
        views = {} if self.view is None else {one.name: one for one in self.view.workflows}
        for name, workflow in self._workflows.items():
            one = views.get(name)
            state = _WORKFLOW_STATES.get(one.state, "finished") if one else "preparing"
            if state == "running" and course.state in ("paused", "stopping"):
                state = course.state
            workflow.facts(state, one)
        shown = self.aggregates()
        if elapsed_s - self._watched_s >= WATCH_S:
            self._watched_s = elapsed_s
            watch(self._judges, shown)  # only the managers end a run by it
        results = assemble(course, shown.values(), self._judges)
        if self.view is not None:
            if self.view.thresholds:
                results.thresholds = list(self.view.thresholds)
            results.datacenters = [_datacenter(one) for one in self.view.datacenters]
            if self.view.together is not None:
                results.together = _datacenter(self.view.together)
        results.workflows = [self._workflows[one.name].whole(one) for one in results.workflows]
        return results

    def _not_less(self, view: JobView) -> JobView:
        known = {one.name: one for one in (self.view.datacenters if self.view is not None else ())}
        datacenters = tuple(_grown(one, known.get(one.name)) for one in view.datacenters)
        before = self.view.together if self.view is not None else None
        together = None if view.together is None else _grown(view.together, before)
        return msgspec.structs.replace(view, datacenters=datacenters, together=together)

    def _course(self, elapsed_s: float) -> Course:
        outline = self.outline or Outline(workflows=())
        view = self.view
        state = "finished" if self.over else _JOB_STATES.get(view.status if view else "submitted")
        if state == "running" and view is not None and view.paused:
            state = "paused"
        return Course(
            name=outline.name,
            started_at=outline.started_at,
            elapsed_s=elapsed_s,
            state=state or "stopping",
            coverage=view.coverage if view is not None else 1.0,
            lost=view.lost if view is not None else (),
            tags=outline.tags,
            warnings=[*outline.warnings, *(self._notes if state == "preparing" else ())],
            environment=Environment(command=outline.command),
        )

    def aggregates(self) -> dict[str, WorkflowAggregate]:
        """What is known of each workflow's numbers."""
        return {name: workflow.shown for name, workflow in self._workflows.items()}

    @property
    def ended_as(self) -> str:
        """The job's last status; "" before its end."""
        if not self.over or self.view is None:
            return ""
        return self.view.status if self.view.status in FINAL else ""

    def _begin(self, outline: Outline) -> None:
        for facts in outline.workflows:
            self._workflows[facts.name] = _Workflow(facts)
        self._judges = judges_of(outline.workflows)
        for judge in self._judges:
            judge.resume(Standing())  # what ran before somebody looked is no bad moment

    def _look(self, view: JobView) -> None:
        self.view = view = self._not_less(view)
        if view.status in ("submitted", "queued") and (view.reason or view.position):
            where = f"waits at place {view.position} of the queue" if view.position else "waits"
            because = f": {view.reason}" if view.reason else ""
            if len(self._notes) < NOTES_MAX:
                self._notes[f"the job {where}{because}"] = None


def _grown(view: DatacenterView, before: DatacenterView | None) -> DatacenterView:
    """A gate that has just taken a job over may know less of a datacenter than the last one."""
    if before is None or view.status == "lost" or view.requests >= before.requests:
        return view
    return msgspec.structs.replace(
        view, requests=before.requests, failed=max(view.failed, before.failed)
    )


def _datacenter(view: DatacenterView) -> DatacenterResult:
    return DatacenterResult(
        name=view.name,
        status=view.status,
        requests=view.requests,
        failed=view.failed,
        elapsed_s=view.elapsed_s,
        duration=Distribution(
            count=view.requests,
            p50_ms=view.p50_ms,
            p95_ms=view.p95_ms,
            p99_ms=view.p99_ms,
            max_ms=view.max_ms,
        ),
        coverage=view.coverage,
        share=view.share,
        vus=view.vus,
    )


class _Workflow:
    def __init__(self, facts: WorkflowFacts) -> None:
        self._facts = facts
        self.shown = aggregate_of(facts)
        self._catching_up: WorkflowAggregate | None = None
        self._index = 0
        self._until_s = 0.0
        self._marks: dict[tuple[float, str], None] = {}
        self._ended: WorkflowResult | None = None
        self.has_caught_up = False  # with its last window

    def snapshot(self, snapshot: Snapshot) -> bool:
        """Whether it is shown."""
        fresh = aggregate_of(self._facts)
        fresh.restore(_ALL, snapshot.state, snapshot.index)
        fresh.advance(snapshot.elapsed_s)
        self._index = snapshot.index
        self._until_s = max(self._until_s, snapshot.elapsed_s)
        self._show(fresh)
        return self._catching_up is None

    def window(self, window: Window) -> Progress | None:
        if window.index <= self._index:
            return None
        since_s, self._index = self._until_s, window.index
        self._until_s = max(since_s, window.elapsed_s)
        was_behind = self._catching_up is not None
        current = self._catching_up or self.shown
        delta = msgspec.structs.replace(window.delta, seq=window.index)
        current.apply(_ALL, delta, window.elapsed_s)
        self._show(current)
        is_behind = self._catching_up is not None
        self.has_caught_up = was_behind and not is_behind
        return Progress(window, since_s, self.shown.requests, self.shown.failed, is_behind)

    def mark(self, at_s: float, text: str) -> None:
        self._marks[at_s, text] = None

    def end(self, done: WorkflowDone) -> Progress | None:
        """What comes with the end and was in no window, as the last one."""
        self.shown.gone(_ALL)
        if not done.result:
            self.shown.facts.error = done.error
            return None
        ended = self._ended = msgspec.json.decode(done.result, type=WorkflowResult)
        missing = _missing(ended, self.shown.freeze(buckets=False))
        if not missing:
            return None
        window = Window(
            workflow=done.workflow,
            index=self._index + 1,
            elapsed_s=max(self._until_s, ended.elapsed_s),
            delta=Delta(seq=self._index + 1, requests=missing),
        )
        return Progress(window, self._until_s, ended.requests, ended.failed)

    def facts(self, state: State, view: WorkflowView | None) -> None:
        known = self.shown.facts
        known.state = state
        known.cores, known.started_s = (view.cores, view.started_s) if view else (0, 0.0)

    def whole(self, so_far: WorkflowResult) -> WorkflowResult:
        """With what did not come with the numbers; the end as the managers told it."""
        if self._ended is not None:
            return self._ended
        known = {(mark.at_s, mark.text) for mark in so_far.marks}
        told = [mark for mark in self._marks if mark not in known]
        so_far.marks += [Mark(at_s=at_s, text=text) for at_s, text in told]
        so_far.marks.sort(key=lambda mark: mark.at_s)
        return so_far

    def _show(self, aggregate: WorkflowAggregate) -> None:
        behind = (
            aggregate.requests < self.shown.requests
            or aggregate.failed < self.shown.failed
            or aggregate.iterations < self.shown.iterations
        )
        if behind:
            self._catching_up = aggregate
        else:
            self.shown, self._catching_up = aggregate, None


def _missing(ended: WorkflowResult, shown: WorkflowResult) -> list[RequestDelta]:
    """By step; nothing when more was shown than there is in the end, which a death can do."""
    before = {step.name: step for step in shown.steps}
    found = []
    for step in ended.steps:
        known = before.get(step.name)
        count, failed, unsent = step.count, step.failed, step.unsent
        if known is not None:
            count, failed = count - known.count, failed - known.failed
            unsent -= known.unsent
        if min(count, failed, unsent) < 0:
            return []
        if count or failed:
            found.append(
                RequestDelta(RequestKey(step.name), count=count, failed=failed, unsent=unsent)
            )
    return found
