"""One virtual user: a long-lived loop over the workflow's steps, with its own client and context.

This is the hot path. Everything that can be decided before the load starts is decided in
`compile_stages`; the loop only calls, records and stores. Arguments are built per call and the
context per iteration, so nothing one VU does can be seen by another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hyperscale.engine.observe import CompiledStep
from hyperscale.workload.results import CallResult, Outcome

if TYPE_CHECKING:
    from hyperscale.clients import Client
    from hyperscale.engine.pace import Pace
    from hyperscale.metrics.recorder import WorkflowRecorder
    from hyperscale.workload.workflow import Workflow

Stage = CompiledStep | tuple[CompiledStep, ...]  # one step, or steps that run at the same time


class VirtualUser:
    __slots__ = (
        "base",
        "client",
        "iteration_started",
        "iterations",
        "recorder",
        "rows",
        "stages",
        "workflow",
        "working",
    )

    def __init__(
        self,
        workflow: Workflow,
        client: Client,
        stages: tuple[Stage, ...],
        base: dict[str, Any],
        recorder: WorkflowRecorder,
        rows: Iterator[Any] | None,
    ) -> None:
        self.workflow = workflow
        self.client = client
        self.stages = stages
        self.base = base
        self.recorder = recorder
        self.rows = rows
        self.iterations = 0
        self.iteration_started = 0.0
        self.working = False

    def close(self) -> None:
        self.client.close()

    async def live(self, pace: Pace[Any]) -> None:
        workflow = self.workflow
        base = self.base
        stages = self.stages
        rows = self.rows
        note_iteration = self.recorder.iterations.append
        ok = Outcome.OK
        lateness = 0.0
        while True:
            if pace.gated:
                turn = await pace.turn(self)
                if turn is None:
                    return
                lateness = turn
            if rows is not None:
                try:
                    workflow.row = next(rows)
                except StopIteration:  # the feed is used up and says stop
                    return
            self.iteration_started = started = perf_counter()
            self.working = True
            context = workflow.context = base.copy()
            if rows is not None:
                context["row"] = workflow.row
            workflow.iteration = self.iterations
            must_yield = False
            for stage in stages:
                if stage.__class__ is tuple:
                    await self._together(stage, context, lateness)
                    continue
                step: CompiledStep = stage  # type: ignore[assignment]
                if step.times_itself:
                    # The common case, written out: a measured call that went well.
                    arguments = step.arguments(context) if step.injects else step.optimized
                    try:
                        result = await step.call(workflow, **arguments)
                    except Exception as error:  # noqa: BLE001 - the author's code may raise anything
                        step.raised(error, lateness, started)
                        must_yield = True
                        continue
                    if isinstance(result, CallResult) and result.outcome is ok and result.ended:
                        step.note(
                            (
                                result.started,
                                result.sent,
                                result.first_byte,
                                result.ended,
                                lateness,
                                result.status,
                                result.bytes_in,
                                result.bytes_out,
                            )
                        )
                        if result.connect is not None:
                            step.connected(result.connect)
                        if step.keeps_response:
                            step.function.response = result  # type: ignore[attr-defined]
                        context[step.name] = result
                        continue
                    must_yield = True
                    if step.settle(result, lateness, started):
                        context[step.name] = result
                else:
                    must_yield |= await step.run(workflow, context, lateness)
            self.iterations += 1
            self.working = False
            note_iteration(perf_counter() - started)
            if must_yield:
                # A step that failed or never waited must not keep the event loop for itself.
                await asyncio.sleep(0)

    async def _together(
        self, steps: tuple[CompiledStep, ...], context: dict[str, Any], lateness: float
    ) -> None:
        await asyncio.gather(*[step.run(self.workflow, context, lateness) for step in steps])
