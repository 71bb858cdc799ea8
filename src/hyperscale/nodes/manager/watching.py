"""Streams of updates for clients that watch a job: what it is, how it stands, its numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.records import Finished
from hyperscale.cluster.jobs.state import JobState
from hyperscale.nodes.manager.bodies import Bodies
from hyperscale.nodes.manager.client_queries import ClientQueries
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.manager.merging import Merging
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.passing_on import passed_on, passing_on
from hyperscale.nodes.protocol.jobs import (
    JobUpdate,
    JobView,
    Snapshot,
    WatchJob,
    Window,
    WorkflowDone,
)
from hyperscale.runtime.host import Clock
from hyperscale.wire.serving import Call

# How long a watcher may know no more than what a job is at: who was lost, how much is covered.
VIEW_S = 0.5


class Watching:
    def __init__(
        self,
        clock: Clock,
        settings: ManagerSettings,
        jobs: JobQueries,
        leadership: Leadership,
        live: Live,
        bodies: Bodies,
        merging: Merging,
        queries: ClientQueries,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._jobs = jobs
        self._leadership = leadership
        self._live = live
        self._bodies = bodies
        self._merging = merging
        self._queries = queries

    async def watch(self, call: Call, ask: WatchJob) -> AsyncIterator[JobUpdate]:
        if not self._leadership.leads():
            peer = self._leadership.elsewhere(call, ask)
            with passing_on(call):
                async with await peer.subscribe(passed_on(call, ask), JobUpdate) as updates:
                    async for passed in updates:
                        yield passed
            return
        self._leadership.count(call, ask)
        job = self._queries.known(call, ask, ask.job_id)
        seen = _Seen(since=self._clock.now())
        while self._leadership.leads():
            update = self._update(job, seen, ask.live)
            if update is not None:
                yield update
                if update.final:
                    return
            await self._clock.sleep(self._settings.window_s)
            if self._jobs.job(ask.job_id) is None:
                return

    def _update(self, job: JobState, seen: _Seen, live: bool) -> JobUpdate | None:
        body = self._bodies.of(job)
        outline = None if seen.outlined else body.outline()
        seen.outlined = True
        view = self._changed_view(job, seen)
        snapshots: list[Snapshot] = []
        windows: list[Window] = []
        done: list[WorkflowDone] = []
        for facts in body.workflows:
            workflow = job.workflows[facts.name]
            if workflow.is_settled:
                if facts.name not in seen.done and (told := self._merging.done(job, facts.name)):
                    seen.done.add(facts.name)
                    done.append(told)
            elif live and not job.is_over:
                self._news(job, facts.name, seen, snapshots, windows)
        marks = tuple((m.workflow, m.at_s, m.text) for m in job.marks[seen.marks :])
        seen.marks = len(job.marks)
        final = job.finished
        if not (outline or view or snapshots or windows or done or marks or final):
            return None
        return JobUpdate(
            outline=outline,
            view=view,
            snapshots=tuple(snapshots),
            windows=tuple(windows),
            done=tuple(done),
            marks=marks,
            results=final.results if final is not None else b"",
            states=_states(job, final),
            final=final is not None,
        )

    def _changed_view(self, job: JobState, seen: _Seen) -> JobView | None:
        """None: the watcher knows it. A view of a thousand parts takes milliseconds, so while the
        job stands where it stood it is not made for every window."""
        now = self._clock.now()
        prepared = self._jobs.is_prepared(job)
        standing = (
            job.status,
            prepared,
            job.paused,
            *(w.lifecycle.state for w in job.workflows.values()),
        )
        if standing == seen.standing and now < seen.viewed_at + VIEW_S:
            return None
        seen.standing, seen.viewed_at = standing, now
        view = self._queries.view(job)
        told = msgspec.structs.replace(
            view, age_s=0.0, began_ago_s=None, workflows=_without_numbers(view)
        )
        if told == seen.view:
            return None
        seen.view = told
        return view

    def _news(
        self,
        job: JobState,
        name: str,
        seen: _Seen,
        snapshots: list[Snapshot],
        windows: list[Window],
    ) -> None:
        patient = self._clock.now() - seen.since < self._settings.snapshot_wait_s
        news = self._live.since(job.job_id, name, seen.index.get(name), whole=patient)
        if isinstance(news, Snapshot):
            snapshots.append(news)
            seen.index[name] = news.index
        elif news:
            windows.extend(news)
            seen.index[name] = news[-1].index


@dataclass(slots=True)
class _Seen:
    """What one watcher has been told."""

    since: float
    outlined: bool = False
    view: JobView | None = None
    viewed_at: float = 0.0
    standing: tuple[object, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    marks: int = 0


def _states(job: JobState, final: Finished | None) -> dict[str, bytes]:
    if final is None or not final.states:
        return {}
    return dict(zip(job.workflows, final.states, strict=True))


def _without_numbers(view: JobView) -> tuple[Any, ...]:
    """A view without what moves all the time: only other changes are worth telling."""
    return tuple(
        msgspec.structs.replace(workflow, elapsed_s=0.0, requests=0, failed=0)
        for workflow in view.workflows
    )
