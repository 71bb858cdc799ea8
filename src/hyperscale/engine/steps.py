"""A step made ready to run many times, and how each run becomes numbers.

A run has a duration of its own beside its requests, which clients note themselves. It fails if it
raises or if the response it returns had failed; an exception is charged to the innermost step.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hyperscale.engine import memory
from hyperscale.engine.explain import explain
from hyperscale.engine.scope import StepScope
from hyperscale.workload import frames
from hyperscale.workload.custom_metrics import Metric
from hyperscale.workload.hooks import HookType
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import CallFailed, CallResult, CustomResult, Outcome
from hyperscale.workload.scope import CURRENT, Label
from hyperscale.workload.signals import Signal, StepSkipped, beside_signals, signal_in

if TYPE_CHECKING:
    from hyperscale.engine.vu import VirtualUser
    from hyperscale.metrics.recorder import WorkflowRecorder
    from hyperscale.workload.step_plan import StepPlan
    from hyperscale.workload.workflow import Workflow

_OK = Outcome.OK
_enter_scope, _leave_scope = CURRENT.set, CURRENT.reset


class CompiledStep:
    """`is_simple`: an HTTP step that always runs once, whose way through a user's loop is short.
    `is_bare`: and that is called without arguments, as soon as it is its turn."""

    __slots__ = (
        "_attribute",
        "_choice",
        "_custom",
        "_keeps_response",
        "_optional",
        "_parameters",
        "_promises",
        "_recorder",
        "call",
        "ended",
        "function",
        "group",
        "hook",
        "injectable",
        "is_async",
        "is_bare",
        "is_simple",
        "is_weighted",
        "judges",
        "name",
        "needs",
        "number",
        "optimized",
        "record",
        "weight",
    )

    def __init__(
        self, number: int, plan: StepPlan, recorder: WorkflowRecorder, *, keeps_response: bool
    ) -> None:
        self.number = number
        self.name = plan.name
        self.hook = plan.hook_type
        self.function = plan.function
        self.call: Callable[..., Awaitable[Any]] = plan.call
        self.needs = plan.dependencies
        self.group = plan.group
        self.is_weighted = plan.choice.weight is not None
        self.weight = plan.choice.weight or 0.0
        self.optimized = _beyond_defaults(plan)
        self.injectable = plan.injectable
        self.record = recorder.steps[plan.name]
        self.ended = self.record.durations.append
        self.judges: tuple[CompiledStep, ...] = ()  # checks and metrics that run after each run
        self.is_simple = (
            plan.hook_type is HookType.TEST
            and plan.kind != "custom"
            and plan.choice.times == 1
            and plan.choice.when is None
            and plan.choice.chance is None
            and not plan.group
            and not keeps_response
        )
        self.is_bare = self.is_simple and not (self.needs or self.injectable or self.optimized)
        self._attribute = plan.attribute
        self._choice = plan.choice
        self._custom = Label("", plan.name, kind="custom")
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(plan.function))
        self._keeps_response = keeps_response and plan.hook_type is HookType.TEST
        self._optional = plan.optional
        self._parameters = plan.parameters
        self._promises = plan.promises
        self._recorder = recorder

    def arguments(self, context: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of one call: optimised values, and what the context holds by name."""
        injected = {name: context[name] for name in self.injectable if name in context}
        return {**self.optimized, **injected}

    def has(self, context: dict[str, Any]) -> bool:
        """All that it waits for is there."""
        return all(name in context for name in self.needs)

    def beside(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of a call by the author's own code, which gives some itself."""
        if not self.optimized:
            return named
        taken = self._parameters[: len(given)]
        return {name: v for name, v in self.optimized.items() if name not in taken} | named

    # -- in the graph of steps -------------------------------------------------------------------

    async def run(self, user: VirtualUser, context: dict[str, Any]) -> None:
        """As often as its declaration says; what it returns is there for later steps."""
        missing = next((name for name in self.needs if name not in context), None)
        if missing is not None:
            if self.hook is HookType.TEST or self.hook is HookType.ACTION:
                self.record.skip(f"{missing} {user.why_absent(missing)}")
            user.lacks(self.name, "was skipped")
            return
        if not self._is_wanted(user):
            user.lacks(self.name, "was skipped")
            return
        for _ in range(self._choice.times):
            try:
                await self.measure(user, context, (), self.arguments(context))
            except Signal:
                raise
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                ours = isinstance(error, asyncio.CancelledError) and is_cancelled()
                if ours or isinstance(error, MemoryError):
                    raise
                # else some step answers for it, and the graph goes on

    def _is_wanted(self, user: VirtualUser) -> bool:
        choice = self._choice
        if choice.chance is not None and user.workflow.random.random() >= choice.chance:
            self.record.skip("by chance")
            return False
        if choice.when is None:
            return True
        began = perf_counter()
        try:
            wanted = bool(choice.when(user.workflow))
        except Exception as error:  # noqa: BLE001 - the author's code may raise anything
            self.ended(perf_counter() - began)
            self.raised(user, error)
            return False
        if not wanted:
            self.record.skip("its when said no")
        return wanted

    # -- called by a flow ------------------------------------------------------------------------

    def of(self, user: VirtualUser) -> Callable[..., Awaitable[Any]]:
        """What `self.<step>(...)` is to a user with a flow."""
        if self.judges or not self.is_simple:
            return partial(self._enter, user)
        scope = user.scopes[self.number]
        return partial(CompiledStep._enter_simply, self, user, scope, user.workflow)

    def _enter(self, user: VirtualUser, *given: Any, **named: Any) -> Awaitable[Any]:
        return self.measure(user, user.workflow.context, given, self.beside(given, named))

    async def _enter_simply(
        self, user: VirtualUser, scope: StepScope, workflow: Workflow, *given: Any, **named: Any
    ) -> Any:
        """As `measure`, written out for the call that most flows consist of."""
        call, ended = self.call, self.ended
        outer = _enter_scope(scope)
        began = perf_counter()
        try:
            if given or named or self.optimized:
                result = await call(workflow, *given, **self.beside(given, named))
            else:
                result = await call(workflow)
        except BaseException as error:
            _leave_scope(outer)
            if not self.simple_raised(user, error, began):
                raise
            await asyncio.sleep(0)  # a flow that tries again for ever must not stop the others
            if not isinstance(signal_in(error), StepSkipped):
                raise
            return None
        _leave_scope(outer)
        if result.__class__ is HTTPResponse and result.outcome is _OK and scope.pending is None:
            ended(perf_counter() - began)
            workflow.context[self.name] = result
        else:
            self._settle(user, scope, workflow.context, result, began)
        return result

    # -- one run ---------------------------------------------------------------------------------

    async def measure(
        self, user: VirtualUser, context: dict[str, Any], given: tuple[Any, ...], named: Any
    ) -> Any:
        """Run it once, note what there is to note, and raise what it raised."""
        scope = user.scopes[self.number]
        before = CURRENT.set(scope)
        began = perf_counter()
        try:
            if self.is_async:
                result = await self.call(user.workflow, *given, **named)
            else:
                result = self.call(user.workflow, *given, **named)
            if self.hook is HookType.METRIC:
                number = result.value if isinstance(result, Metric) else result
                self._recorder.metric(self.name, float(number))
        except BaseException as error:
            if not self.simple_raised(user, error, began):
                raise
            await asyncio.sleep(0)
            if not isinstance(signal_in(error), StepSkipped):
                raise
            return None
        finally:
            CURRENT.reset(before)
            if self.group:
                user.in_group(self.group, perf_counter() - began)
        if (
            result.__class__ is HTTPResponse
            and result.outcome is _OK
            and scope.pending is None
            and not self._keeps_response
        ):
            self.ended(perf_counter() - began)
            context[self.name] = result
        elif not self._settle(user, scope, context, result, began):
            return result
        for judge in self.judges:
            if judge.has(context):
                await judge.run(user, context)
        return result

    def _interrupted(self, user: VirtualUser, error: BaseException, began: float) -> bool:
        """Whether something other than this step's own code ended it; notes which."""
        signal = signal_in(error)
        if signal is not None:
            beside = beside_signals(error)
            if beside is not None and not user.is_charged(beside, began):
                self.raised(user, beside)
            elif isinstance(signal, StepSkipped):
                self.record.skip(signal.reason)
                return True
            self.ended(perf_counter() - began)
        elif user.is_charged(error, began) or (
            isinstance(error, asyncio.CancelledError) and is_cancelled()
        ):
            self.record.interrupted += 1
        else:
            self.ended(perf_counter() - began)
            return False
        scope = user.scopes[self.number]
        if scope.pending is not None:
            scope.settle()
        return True

    def _settle(
        self,
        user: VirtualUser,
        scope: StepScope,
        context: dict[str, Any],
        result: Any,
        began: float,
    ) -> bool:
        """The end of a run that raised nothing; False when it has no result for others."""
        if isinstance(result, CustomResult):
            self._time_custom(scope, result, began)
        if scope.pending is not None:
            scope.settle()
        if result is None and self._promises and self._optional:
            self.record.skip("returned None")
            user.lacks(self.name, "was skipped")
            return False
        self.ended(perf_counter() - began)
        if self.hook is HookType.CHECK:
            self._checked(user, result)
        elif isinstance(result, CallResult):
            if result.outcome is not Outcome.OK:
                self.record.failed()
                if not result.status and not isinstance(result, CustomResult):
                    user.lacks(self.name, "got no answer")
                    return False
            elif self._keeps_response:
                self._attribute.response = result  # type: ignore[attr-defined]
        elif self._promises:
            text = f"{self.name} returned {type(result).__name__}, not a response"
            self.record.failed(Outcome.EXCEPTION, "no response", text)
            user.lacks(self.name, "failed")
            return False
        context[self.name] = result
        return True

    def _time_custom(self, scope: StepScope, result: CustomResult, began: float) -> None:
        if not result.ended:  # it leaves the timing to us
            result.started, result.ended = began, perf_counter()
            result.sent = began
            result.first_byte = result.ended
        result.conclude()
        scope.count(self._custom, result)
        scope.user.last = result

    def simple(self, user: VirtualUser, context: dict[str, Any], result: Any, began: float) -> None:
        """The end of a simple step that was not the usual one."""
        self._settle(user, user.scopes[self.number], context, result, began)

    def simple_raised(self, user: VirtualUser, error: BaseException, began: float) -> bool:
        """Note what a run raised; False when the graph of steps cannot go on after it."""
        if not self._interrupted(user, error, began):
            self.raised(user, error)
            user.lacks(self.name, "failed")
            return True
        if isinstance(signal_in(error), StepSkipped):
            user.lacks(self.name, "was skipped")
            return True
        user.lacks(self.name, "was interrupted")
        return user.is_charged(error, began)

    # -- what went wrong -------------------------------------------------------------------------

    def raised(self, user: VirtualUser, error: BaseException) -> None:
        """Charge an exception of the author's code to this step."""
        if isinstance(error, MemoryError):
            memory.make_room()
            raise error  # a process without memory measures nothing: this ends its load
        scope = user.scopes[self.number]
        if scope.pending is not None:
            scope.settle()
        user.charge(error)
        cause = first_in(error)
        message = f"{type(cause).__name__}: {cause}"
        hint = frames.variable_hint(cause)
        message += f" ({hint})" if hint else ""
        first = partial(
            explain, *user.moment(), error=error, result=self._about(user), step=self.function
        )
        if self.hook is HookType.CHECK:
            self._recorder.check(self.name, message, first)
            return
        if isinstance(cause, CallFailed) and cause.result is not None:
            self.record.failed()  # reading the body told the author; the request tells the rest
        else:
            self.record.failed(Outcome.EXCEPTION, type(cause).__name__, message, first)
        user.on_error(self.name, message)

    def _checked(self, user: VirtualUser, result: Any) -> None:
        message = None
        if isinstance(result, BaseException):
            message = f"{type(result).__name__}: {result}"
        elif result is False:
            message = f"{self.name} returned False"
        first = partial(explain, *user.moment(), result=self._about(user)) if message else None
        self._recorder.check(self.name, message, first)

    def _about(self, user: VirtualUser) -> CallResult | None:
        """The exchange to show with a failure: of a check, the one that it judges, else the last
        one of this iteration."""
        if self.hook is HookType.CHECK:
            given = (user.workflow.context.get(name) for name in self.needs)
            judged = next((one for one in given if isinstance(one, CallResult)), None)
            if judged is not None:
                return judged
        last = user.last
        return last if last is not None and last.ended >= user.iteration_started else None


def _beyond_defaults(plan: StepPlan) -> dict[str, Any]:
    """Prepared arguments that a call must give; the others are the function's own defaults."""
    own = inspect.signature(plan.call, follow_wrapped=False).parameters
    return {
        name: value
        for name, value in plan.optimized.items()
        if name not in own or own[name].default is not value
    }


def first_in(error: BaseException) -> BaseException:
    """What happened, where a group only says that something did."""
    return first_in(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def is_cancelled() -> bool:
    """Somebody asked for the running task's end, so a CancelledError is not the author's own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
