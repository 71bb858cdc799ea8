"""The view for logs: plain lines without a single escape, one per workflow every few seconds.

A line is also written at once when something happens: a workflow starts or ends, a change is
marked on the timeline, a threshold is crossed, a worker is lost, a warning appears. Rate and p95
are of the last seconds, counts of the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.live.source import Watched
from hyperscale.ui.output import Output
from hyperscale.ui.window import RateWindow, recent_p95_ms

INTERVAL_S = 5.0
# How late news may be; a snapshot is cheap but not free.
_POLL_S = 0.5


class CiView:
    def __init__(
        self,
        stream: TextIO,
        *,
        interval_s: float = INTERVAL_S,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._output = Output(stream, environ)
        self._lines = CiLines(interval_s)
        self._interval_s = interval_s
        self._over = asyncio.Event()

    def over(self) -> None:
        self._over.set()

    async def run(self, source: Watched) -> None:
        while True:
            results = source.results()
            for line in self._lines.due(results, time.monotonic()):
                self._output.write(line + "\n")
            if results.state == "finished" or self._over.is_set():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_POLL_S, self._interval_s)):
                    await self._over.wait()


class CiLines:
    """Decides which lines a snapshot deserves; the clock is the caller's."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._next = 0.0
        self._states: dict[str, str] = {}
        self._windows: dict[str, RateWindow] = {}
        self._marks: dict[str, int] = {}
        self._warnings: set[str] = set()
        self._lost = 0
        self._crossed: set[str] = set()
        self._saturated = False

    def due(self, results: Results, now: float) -> list[str]:
        periodic = now >= self._next
        if periodic:
            self._next = now + self._interval_s
        lines: list[str] = []
        for workflow in results.workflows:
            news = self._news(workflow)
            lines += [f"{text.clock(results.elapsed_s)}  {workflow.name}  {item}" for item in news]
            if workflow.state not in ("running", "paused", "stopping"):
                continue
            window = self._windows.setdefault(workflow.name, RateWindow(self._interval_s))
            window.add(now, workflow.requests)
            if periodic and workflow.elapsed_s > 0:
                lines.append(f"{text.clock(results.elapsed_s)}  {progress(workflow, window)}")
        news = self._run_news(results)
        if periodic:  # a number close to its limit crosses it again and again
            news += self._threshold_news(results)
        clock = text.clock(results.elapsed_s)
        return [*lines, *(f"{clock}  {text.one_line(item)}" for item in news)]

    def _run_news(self, results: Results) -> list[str]:
        news = [f"lost: {sentence}" for sentence in results.lost[self._lost :]]
        self._lost = len(results.lost)
        warnings = [warning for warning in results.warnings if warning not in self._warnings]
        self._warnings.update(warnings)
        news += [f"warning: {warning}" for warning in warnings]
        if results.saturation and not self._saturated:
            self._saturated = True  # once: the sentence carries numbers that keep changing
            news.append(f"warning: {results.saturation}")
        return news

    def _threshold_news(self, results: Results) -> list[str]:
        crossed = {
            f"{each.scope} {each.expression}": each.actual_text
            for each in results.thresholds
            if not each.passed and each.actual is not None
        }
        before, self._crossed = self._crossed, set(crossed)
        return [
            *(f"threshold crossed: {n}  {now}" for n, now in crossed.items() if n not in before),
            *(f"threshold holds again: {name}" for name in sorted(before - self._crossed)),
        ]

    def _news(self, workflow: WorkflowResult) -> list[str]:
        news: list[str] = []
        before = self._states.get(workflow.name, "preparing")
        if before != workflow.state:
            self._states[workflow.name] = workflow.state
            news += _turn(workflow, before)
        seen = self._marks.get(workflow.name, 0)
        self._marks[workflow.name] = len(workflow.marks)
        news += [
            f"at {text.seconds(mark.at_s)}: {text.one_line(mark.text)}"
            for mark in workflow.marks[seen:]
        ]
        return news


def _turn(workflow: WorkflowResult, before: str) -> list[str]:
    """What a change of state is worth saying; pausing and resuming are marks already."""
    if workflow.error:
        return [f"failed: {text.one_line(workflow.error)}"]
    if workflow.state == "finished":
        return [
            f"finished: {text.count(workflow.requests)} requests,"
            f" {text.count(workflow.failed)} failed"
            f"{f' ({text.count(workflow.unsent)} never sent)' if workflow.unsent else ''},"
            f" {text.count(workflow.iterations)} iterations in {text.seconds(workflow.elapsed_s)}"
        ]
    if before == "preparing" and workflow.state == "running":
        return [f"started: {workflow.load}" if workflow.load else "started"]
    return ["stopping"] if workflow.state == "stopping" else []


def progress(workflow: WorkflowResult, window: RateWindow) -> str:
    requests = workflow.requests
    so_far = requests / workflow.elapsed_s if workflow.elapsed_s else 0.0
    recent = window.per_second if window.is_open else so_far
    p95_ms = recent_p95_ms(workflow)
    fields = [
        workflow.name,
        _share_done(workflow),
        f"vus={workflow.vus}",
        f"rate={text.rate(recent)}",
        f"p95={text.NOTHING if p95_ms is None else text.short_duration(p95_ms)}",
        f"requests={requests}",
        f"failed={workflow.failed} ({text.percent(workflow.failed_share, 1)})",
    ]
    if workflow.unsent:
        fields.append(f"unsent={workflow.unsent}")
    if workflow.dropped_iterations:
        fields.append(f"dropped={workflow.dropped_iterations}")
    return "  ".join(field for field in fields if field)


def _share_done(workflow: WorkflowResult) -> str:
    if workflow.planned_s:
        return f"{min(100, int(workflow.elapsed_s / workflow.planned_s * 100))}%"
    if workflow.planned_iterations:
        return f"{min(100, workflow.iterations * 100 // workflow.planned_iterations)}%"
    return ""
