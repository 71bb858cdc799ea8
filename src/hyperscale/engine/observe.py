"""A step made ready to run many times, and how its outcome becomes numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hyperscale.engine import memory
from hyperscale.workload.custom_metrics import Metric
from hyperscale.workload.hooks import HookType
from hyperscale.workload.results import WITHOUT_LATENCY, CallFailed, CallResult, Connect, Outcome

if TYPE_CHECKING:
    from hyperscale.metrics.recorder import WorkflowRecorder
    from hyperscale.workload.plan import StepPlan


class CompiledStep:
    __slots__ = (
        "_injectable",
        "_on_error",
        "_recorder",
        "_step",
        "call",
        "function",
        "hook",
        "injects",
        "keeps_response",
        "measured",
        "name",
        "note",
        "optimized",
        "times_itself",
    )

    def __init__(
        self,
        plan: StepPlan,
        recorder: WorkflowRecorder,
        *,
        keeps_response: bool,
        on_error: Callable[[str, str], None],
    ) -> None:
        self.name = plan.name
        self.hook = plan.hook_type
        self.measured = plan.hook_type is HookType.TEST
        self.function = plan.function
        self.call: Callable[..., Awaitable[Any]] = plan.function
        self.keeps_response = keeps_response and self.measured
        self.times_itself = self.measured and plan.kind != "custom"
        self.optimized = dict(plan.optimized)
        self.injects = bool(plan.injectable)
        self._injectable = plan.injectable
        self._recorder = recorder
        self._on_error = on_error
        if self.measured:
            self._step = recorder.steps[plan.name]
            self.note: Callable[[tuple[float, ...]], None] = self._step.samples.extend

    def arguments(self, context: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of one call: optimised values, and what the context holds by name."""
        injected = {name: context[name] for name in self._injectable if name in context}
        return {**self.optimized, **injected}

    async def run(self, workflow: Any, context: dict[str, Any], lateness: float = 0.0) -> bool:
        """Run and record any kind of step; True when it may not have waited for anything."""
        started = perf_counter()
        try:
            result = await self.call(workflow, **self.arguments(context))
            if self.hook is HookType.METRIC:
                number = result.value if isinstance(result, Metric) else result
                self._recorder.metric(self.name, float(number))
        except Exception as error:  # noqa: BLE001 - the author's code may raise anything
            self.raised(error, lateness, started)
            return True
        if self.hook is HookType.CHECK:
            self._checked(result)
        if not self.measured or self.settle(result, lateness, started):
            context[self.name] = result
        return True

    def settle(self, result: Any, lateness: float, started: float) -> bool:
        """Record the result of a measured step; True when dependants may see it."""
        if not isinstance(result, CallResult):
            self._step.failure(
                Outcome.EXCEPTION,
                "no result",
                f"{self.name} returned {type(result).__name__}, not a response",
                False,
            )
            return False
        if not result.ended:  # a CustomResult that leaves the timing to us
            result.started, result.ended = started, perf_counter()
            result.sent = started
            result.first_byte = result.ended
        outcome = result.outcome
        answered = outcome not in WITHOUT_LATENCY
        if answered:
            self.note(
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
            self.connected(result.connect)
        if outcome is not Outcome.OK:
            detail = str(result.status) if outcome is Outcome.STATUS else ""
            self._step.failure(outcome, detail, result.error, answered)
        elif self.keeps_response:
            self.function.response = result  # type: ignore[attr-defined]
        return outcome is Outcome.OK or result.status > 0

    def connected(self, connect: Connect) -> None:
        self._step.connected(connect.dns_s, connect.connect_s, connect.tls_s)

    def raised(self, error: Exception, lateness: float, started: float) -> None:
        if isinstance(error, MemoryError):
            memory.make_room()
            raise error  # a process without memory measures nothing: this ends its load
        message = f"{type(error).__name__}: {error}"
        if self.hook is HookType.CHECK:
            self._recorder.check(self.name, message)
        elif self.measured and isinstance(error, CallFailed):
            # Reading the body told the author; what happened is what the call says.
            if error.result is None:
                self._step.failure(error.outcome, "", str(error), False)
            else:
                self.settle(error.result, lateness, started)
        elif self.measured:
            self._step.failure(Outcome.EXCEPTION, type(error).__name__, message, False)
        else:
            self._on_error(self.name, message)

    def _checked(self, result: Any) -> None:
        if isinstance(result, BaseException):
            self._recorder.check(self.name, f"{type(result).__name__}: {result}")
        elif result is False:
            self._recorder.check(self.name, f"{self.name} returned False")
        else:
            self._recorder.check(self.name, None)
