"""The author's hooks outside the load, on one slice: Use, setup(), Provide, teardown(), and the
values that they and a workflow without measurement hand to other workflows.

They belong to no virtual user: each runs on an instance and on connections of its own, and its
requests are counted apart from those of the load.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from hyperscale.clients import ClientPool
from hyperscale.engine import values as handed
from hyperscale.engine.messages import Prepare, Stamped, TornDown, Values
from hyperscale.engine.scope import UnmeasuredScope
from hyperscale.errors import RunFailed
from hyperscale.metrics.recorder import WorkflowRecorder
from hyperscale.workload import frames
from hyperscale.workload.given import AnyWorkflow, class_of
from hyperscale.workload.hooks import USER_HOOKS, bind_uses
from hyperscale.workload.plan import WorkflowPlan
from hyperscale.workload.scope import CURRENT


class StateHooks:
    """`base` is the context that every virtual user begins with: what other workflows left, and
    the values of the Use hooks."""

    def __init__(
        self,
        order: Prepare,
        plan: WorkflowPlan,
        classes: Sequence[AnyWorkflow],
        pool: ClientPool,
        recorder: WorkflowRecorder,
        base: dict[str, Any],
    ) -> None:
        self._order = order
        self._plan = plan
        # Values of others may be read though that runs code.
        self._pickles = any(class_of(workflow).pickle_values for workflow in classes)
        self.pool = pool
        self._recorder = recorder
        self.base = base
        self.base.update(self._read(order.context))

    async def run_uses(self) -> None:
        values: dict[str, Any] = {}
        for use in self._plan.uses:
            used: dict[str, Any] = {}
            for provider in use.workflows:
                used.update(self._read(self._order.used.get(provider, {})))
            wanted = {name: used[name] for name in use.arguments if name in used}
            result = await self._before_load(f"{use.name}()", use.function, self.base, **wanted)
            values[use.name] = result
            self.base.update(wanted)
            self.base[use.name] = result
        bind_uses(self._plan.workflow, values)

    async def run_setup(self) -> Values:
        """What setup() wrote, where this slice is the one to run it."""
        if not self._order.run_setup or not self._plan.setup:
            return {}
        context = dict(self.base)
        await self._before_load("setup()", self._plan.setup, context)
        return self.written(context)

    def take(self, setup_wrote: Values) -> None:
        self.base.update(self._read(setup_wrote))

    async def run_provides(self, errors: dict[str, str]) -> Values:
        provided: Values = {}
        scope = UnmeasuredScope()
        for provide in self._plan.provides:
            try:
                value = await self._run(scope, provide.function, dict(self.base))
            except Exception as error:  # noqa: BLE001 - the author's code may raise anything
                errors[provide.name] = frames.told(error)
                continue
            provided[provide.name] = self._stamped(provide.name, value)
        self._recorder.unmeasured("setup", scope.requests)
        return provided

    async def run_teardown(self) -> TornDown:
        error, scope = "", UnmeasuredScope()
        if self._plan.teardown:
            try:
                await self._run(scope, self._plan.teardown, dict(self.base))
            except Exception as raised:  # noqa: BLE001 - the author's code may raise anything
                error = f"teardown() raised {frames.told(raised)}"
        return TornDown(error, scope.requests)

    def written(self, context: dict[str, Any]) -> Values:
        """Values the author put into a context: not step results, not what was there before."""
        steps = {*(step.name for step in self._plan.steps), *USER_HOOKS}
        return {
            key: self._stamped(key, value)
            for key, value in context.items()
            if key not in steps and not (key in self.base and self.base[key] is value)
        }

    async def _before_load(
        self, what: str, hook: Callable[..., Any], context: dict[str, Any], **values: Any
    ) -> Any:
        scope = UnmeasuredScope()
        try:
            return await self._run(scope, hook, context, **values)
        except Exception as error:
            raise RunFailed(
                f"{what} of {self._plan.name} raised {frames.told(error)}",
                frames.variable_hint(error) or "no load was started; --debug shows the traceback",
            ) from error
        finally:
            self._recorder.unmeasured("setup", scope.requests)

    async def _run(
        self,
        scope: UnmeasuredScope,
        hook: Callable[..., Any],
        context: dict[str, Any],
        **values: Any,
    ) -> Any:
        workflow = self._plan.make()
        workflow.client = self.pool.client()
        workflow.context = context
        before = CURRENT.set(scope)
        try:
            result = hook(workflow, **values)
            return await result if inspect.isawaitable(result) else result
        finally:
            CURRENT.reset(before)

    def _stamped(self, key: str, value: Any) -> Stamped:
        workflow = self._plan.workflow
        try:
            data = handed.pickled(value) if workflow.pickle_values else handed.pack(value)
        except handed.NotPlain as error:
            raise RunFailed(
                f"{self._plan.name} cannot hand on {key!r}, which is or holds {error}",
                f"plain values are handed on ({handed.PLAIN}); others when {workflow.__name__} has "
                "pickle_values = True, which lets every worker of a cluster run code in the others",
            ) from error
        except Exception as error:
            raise RunFailed(
                f"{self._plan.name} cannot hand on {key!r}, a {type(value).__name__}: {error}",
                "keep connections and files out of the context; pass plain values",
            ) from error
        return Stamped(0, self._order.core, data)

    def _read(self, values: Values) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for key, stamped in values.items():
            try:
                read[key] = handed.unpack(stamped.value, self._pickles)
            except handed.Unreadable as error:
                raise RunFailed(
                    f"{self._plan.name} cannot read {key!r}, which was handed to it: {error}",
                    "all workers need the same version of Hyperscale",
                ) from error
        return read
