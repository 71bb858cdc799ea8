"""One virtual user: a long-lived loop over the workflow's steps, with its own client and context.

This is the hot path. Everything that can be decided before the load starts is decided in a
`CompiledStep`; the loop only calls, notes and stores. Arguments are built per call and the context
per iteration, so nothing one user does can be seen by another. An iteration is the author's `flow`
where there is one, else the graph of steps.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hyperscale.engine.scope import StepScope
from hyperscale.engine.steps import CompiledStep, is_cancelled
from hyperscale.errors import BadInput
from hyperscale.workload.custom_metrics import WORDS
from hyperscale.workload.hooks import USER, HookType
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import CallResult, Outcome
from hyperscale.workload.scope import CURRENT
from hyperscale.workload.signals import TestStopped, UserStopped, signal_in
from hyperscale.workload.thresholds import METRICS

if TYPE_CHECKING:
    from hyperscale.clients import Client
    from hyperscale.engine.pace import Pace
    from hyperscale.metrics.recorder import WorkflowRecorder
    from hyperscale.workload.custom_metrics import MetricKind
    from hyperscale.workload.workflow import Workflow

# Exceptions that steps of an iteration answered for; a few are on their way at a time.
CHARGED_MAX = 50


class WeightedSteps:
    """One of them runs in an iteration."""

    __slots__ = ("_bounds", "_last", "_steps")

    def __init__(self, steps: Sequence[CompiledStep]) -> None:
        self._steps = steps
        self._bounds = list(accumulate(step.weight for step in steps))
        self._last = len(steps) - 1

    def pick(self, dice: random.Random) -> CompiledStep:
        """As `dice.choices` would, without adding up the weights again."""
        bounds = self._bounds
        return self._steps[bisect(bounds, dice.random() * bounds[-1], 0, self._last)]


# One step, steps that run at the same time, or weighted steps of which one runs.
Stage = CompiledStep | tuple[CompiledStep, ...] | WeightedSteps


@dataclass
class Program:
    """What all users of a workflow in this process have in common."""

    recorder: WorkflowRecorder
    steps: list[CompiledStep]
    stages: tuple[Stage, ...]
    on_error: Callable[[str, str], None]  # step, message
    on_stop_test: Callable[[str, bool], None]  # reason, failed
    base: dict[str, Any] = field(default_factory=dict)  # every iteration's context begins with it
    flow: CompiledStep | None = None
    on_start: CompiledStep | None = None
    on_stop: CompiledStep | None = None
    last_checks: tuple[CompiledStep, ...] = ()  # of a flow: those that belong to no step
    worker: str = ""
    weighted: set[str] = field(init=False)
    by_function: dict[Callable[..., Any], CompiledStep] = field(init=False)

    def __post_init__(self) -> None:
        self.stages = tuple(
            WeightedSteps(stage) if isinstance(stage, tuple) and stage[0].is_weighted else stage
            for stage in self.stages
        )
        self.weighted = {step.name for step in self.steps if step.is_weighted}
        self.by_function = {
            step.function: step
            for step in self.steps
            if step.hook in (HookType.TEST, HookType.ACTION)
        }


class VirtualUser:
    __slots__ = (
        "_absent",
        "_charged",
        "_groups",
        "_is_untidy",
        "_program",
        "_rows",
        "client",
        "cut",
        "in_hook",
        "iteration_started",
        "iterations",
        "last",
        "lateness",
        "left",
        "pace",
        "scopes",
        "stopped",
        "workflow",
        "working",
    )

    def __init__(
        self, workflow: Workflow, client: Client, program: Program, rows: Iterator[Any] | None
    ) -> None:
        self.workflow = workflow
        self.client = client
        self.scopes = tuple([StepScope(self, step.record) for step in program.steps])
        self.iterations = 0
        self.iteration_started = 0.0
        self.working = self.in_hook = False
        self.cut = False  # the load is over: what runs is ended now
        self.stopped = False  # and that was not planned
        self.left = False  # it has ended; tasks it started may go on
        self.lateness = 0.0
        self.last: CallResult | None = None
        self._program = program
        self._rows = rows
        self._is_untidy = False  # something below is of this iteration only
        self._charged: list[tuple[float, BaseException]] | None = None  # by a step, and since when
        self._absent: dict[str, str] | None = None  # step without a result -> why
        self._groups: dict[str, float] | None = None
        workflow.iteration = 0
        setattr(workflow, USER, self)
        if program.flow is not None:
            for step in program.by_function.values():
                setattr(workflow, step.name, step.of(self))

    def close(self) -> None:
        self.left = True
        for scope in self.scopes:
            if scope.pending is not None:
                scope.settle()
        self.client.close()

    def live(self, pace: Pace[Any]) -> Coroutine[Any, Any, None]:
        """A user's whole life; without on_start and on_stop one frame less for each request."""
        self.pace = pace
        program = self._program
        plain = program.on_start is None and program.on_stop is None
        return self._iterate(pace) if plain else self._live(pace)

    async def _live(self, pace: Pace[Any]) -> None:
        program = self._program
        try:
            if program.on_start is None or await self._start(program.on_start):
                await self._iterate(pace)
        except asyncio.CancelledError:
            if self.cut or program.on_stop is None or not is_cancelled():
                raise
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()  # it was waiting for its turn, and leaves as others do
        if program.on_stop is not None:
            await self._hook(program.on_stop)

    async def _start(self, on_start: CompiledStep) -> bool:
        """Run on_start, which has the row of the first iteration; False when there is none."""
        self.workflow.context = self._program.base.copy()
        if self._rows is not None:
            try:
                self.workflow.row = self.workflow.context["row"] = next(self._rows)
            except StopIteration:
                return False
            self._rows = chain((self.workflow.row,), self._rows)
        return await self._hook(on_start)

    async def _hook(self, hook: CompiledStep) -> bool:
        """Run on_start or on_stop; False when the user asked to end."""
        self.working = self.in_hook = True
        self.lateness = 0.0  # of its last arrival, which is none of a hook's
        try:
            await hook.run(self, self.workflow.context)
        except BaseException as error:  # noqa: BLE001 - as in an iteration
            return self._goes_on(error, hook)
        finally:
            self.working = self.in_hook = False
            self._tidy_up()
        return True

    async def _iterate(self, pace: Pace[Any]) -> None:
        workflow, program, rows = self.workflow, self._program, self._rows
        base, stages, flow = program.base, program.stages, program.flow
        note_iteration = program.recorder.iterations.append
        scopes, enter = self.scopes, CURRENT.set
        inside: StepScope | None = None  # where this task's requests are noted now
        ok, number = Outcome.OK, 0
        if flow is not None:
            run_flow, flow_scope = flow.call, scopes[flow.number]
            enter(flow_scope)
        now = perf_counter()  # of the last event, here the end of the iteration before
        while True:
            if pace.gated:
                turn = await pace.turn(self)
                if turn is None:
                    return
                self.lateness = turn
                now = perf_counter()
            context = base.copy()
            if rows is not None:
                try:
                    context["row"] = workflow.row = next(rows)
                except StopIteration:  # the feed is used up and says stop
                    return
                now = perf_counter()
            self.iteration_started = started = now
            self.working = goes_on = True
            workflow.context = context
            workflow.iteration = number
            last = self.last
            try:
                if flow is not None:
                    await run_flow(workflow)
                    if flow_scope.pending is not None:
                        flow_scope.settle()
                    if program.last_checks:
                        await self._in_turn(program.last_checks, context)
                    now = perf_counter()
                step: Any  # a Stage, until it is one step
                for step in stages:
                    if step.__class__ is not CompiledStep:
                        if step.__class__ is tuple:
                            await self._together(step, context)
                            now = perf_counter()
                            continue
                        step = step.pick(workflow.random)
                    # The common case, written out: a call that goes well.
                    bare = step.is_bare
                    if not bare and not (step.is_simple and step.has(context)):
                        await step.run(self, context)
                        now = perf_counter()
                        continue
                    scope, call = scopes[step.number], step.call
                    if scope is not inside:
                        enter(scope)
                        inside = scope
                    began = now
                    try:
                        if bare:
                            result = await call(workflow)
                        else:
                            result = await call(workflow, **step.arguments(context))
                    except BaseException as error:
                        if not step.simple_raised(self, error, began):
                            raise
                        now = perf_counter()
                        continue
                    if (
                        result.__class__ is HTTPResponse
                        and result.outcome is ok
                        and scope.pending is None
                    ):
                        now = perf_counter()
                        ended = step.ended
                        ended(now - began)
                        context[step.name] = result
                    else:
                        step.simple(self, context, result, began)
                        now = perf_counter()
            except BaseException as error:  # noqa: BLE001 - signals, cancellation, what a flow raises
                last = self.last
                goes_on = self._goes_on(error, flow)
                now = perf_counter()
            self.iterations = number = number + 1
            self.working = False
            note_iteration(now - started)
            if self._is_untidy:
                self._tidy_up()
            exchange = self.last
            if exchange is last or exchange.__class__ is not HTTPResponse:
                # An iteration without an exchange may never have waited: let others have the loop.
                if not goes_on:
                    return
                await asyncio.sleep(0)
                now = perf_counter()

    async def _together(self, steps: Any, context: dict[str, Any]) -> None:
        running = [asyncio.ensure_future(step.run(self, context)) for step in steps]
        try:
            await asyncio.gather(*running)
        except BaseException:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            raise

    async def _in_turn(self, steps: tuple[CompiledStep, ...], context: dict[str, Any]) -> None:
        for step in steps:
            await step.run(self, context)

    def _goes_on(self, error: BaseException, hook: CompiledStep | None) -> bool:
        """What ended an iteration or a hook: whether the user goes on, or the error raised again
        when it is neither the author's nor asked for."""
        program = self._program
        signal = signal_in(error)
        if hook is not None and self.scopes[hook.number].pending is not None:
            self.scopes[hook.number].settle()
        if isinstance(signal, TestStopped):
            program.on_stop_test(signal.reason, signal.failed)
            return False
        if isinstance(signal, UserStopped):
            program.recorder.stopped_users += 1
            return False
        if signal is not None:
            program.recorder.stopped_iterations += 1
            return True
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise error
        if not self.is_charged(error, self.iteration_started):
            if hook is None:
                raise error
            hook.raised(self, error)
        return True

    def charge(self, error: BaseException) -> None:
        """A step answers for it; those around that step do not."""
        self._is_untidy = True
        if self._charged is None:
            self._charged = []
        self._charged.append((perf_counter(), error))
        del self._charged[:-CHARGED_MAX]

    def is_charged(self, error: BaseException, since: float) -> bool:
        """Since then a step answers for it, or for everything in it."""
        if any(known is error and at > since for at, known in self._charged or ()):
            return True
        return isinstance(error, BaseExceptionGroup) and all(
            self.is_charged(part, since) for part in error.exceptions
        )

    def on_error(self, step: str, message: str) -> None:
        self._program.on_error(step, message)

    # -- what the author's code reaches ----------------------------------------------------------

    def call(self, function: Callable[..., Any], given: tuple[Any, ...], named: Any) -> Any:
        """A step called by name: measured, unless it is the inside of the one that runs."""
        step = self._program.by_function.get(function)
        if step is None or (
            step.call is not function and CURRENT.get() is self.scopes[step.number]
        ):
            return function(self.workflow, *given, **named)
        return step.measure(self, self.workflow.context, given, step.beside(given, named))

    def measure(
        self, name: str, kind: MetricKind, value: float, tags: Mapping[str, str] | None
    ) -> None:
        recorder = self._program.recorder
        if not isinstance(name, str) or not name:
            raise BadInput(f"name of a metric is {name!r} but must be a word")
        if name in METRICS:
            raise BadInput(f"metric {name!r} is measured already", "give yours another name")
        known = recorder.kind_of(name, kind)
        if known != kind:
            raise BadInput(f"metric {name!r} is a {WORDS[known]} and cannot be a {WORDS[kind]} too")
        told = tuple((str(key), str(word)) for key, word in tags.items()) if tags else ()
        recorder.metric(name, value, kind, told)

    def why_absent(self, step: str) -> str:
        """Why a step has no result in this iteration."""
        unknown = "was not picked" if step in self._program.weighted else "got no answer"
        return (self._absent or {}).get(step, unknown)

    def lacks(self, step: str, why: str) -> None:
        """A step has no result in this iteration."""
        self._is_untidy = True
        if self._absent is None:
            self._absent = {}
        self._absent[step] = why

    def in_group(self, group: str, seconds: float) -> None:
        self._is_untidy = True
        if self._groups is None:
            self._groups = {}
        self._groups[group] = self._groups.get(group, 0.0) + seconds

    def _tidy_up(self) -> None:
        """At the end of an iteration or a hook."""
        for group, seconds in (self._groups or {}).items():
            self._program.recorder.groups.setdefault(group, []).append(seconds)
        self._groups = self._absent = self._charged = None
        self._is_untidy = False

    def moment(self) -> tuple[float, int, str]:
        """When and where something happened: load time, user, worker."""
        return self.pace.clock.elapsed(), self.workflow.vu_id, self._program.worker
