"""One workflow's performance on its cores: prepare all, start together, collect, tear down.

The parent's half of an `Assignment`. It ends in exactly one of: carried out, failed (the author's
fault or the target's), stopped, or lost (a generator process died).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hyperscale.engine.messages import (
    Command,
    Done,
    Failed,
    Go,
    Pause,
    Prepare,
    Prepared,
    Progress,
    Report,
    Resume,
    Scale,
    Stop,
    Teardown,
    TornDown,
    Trace,
    Values,
)
from hyperscale.engine.pool import Core
from hyperscale.errors import BadInput, HyperscaleError, RunFailed
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.workload.load import PerVUIterations, SharedIterations, split_vus
from hyperscale.workload.plan import WorkflowPlan

PREPARE_LIMIT_S = 60.0
GLANCE_S = 0.5
STUCK_SLACK_S = 15.0
STOP_SLACK_S = 5.0  # beyond graceful_stop, before a generator that does not answer is killed
TEARDOWN_LIMIT_S = 30.0


class Performance:
    def __init__(
        self,
        plan: WorkflowPlan,
        aggregate: WorkflowAggregate,
        cores: list[Core],
        orders: list[Prepare],
        on_trace: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.aggregate = aggregate
        self.cores = cores
        self.context: Values = {}
        self.provided: Values = {}
        self.lost: list[str] = []  # one sentence per generator process that died
        self.failure: HyperscaleError | None = None
        self.failure_detail = ""
        self.warnings: list[str] = []
        self._orders = orders
        self._on_trace = on_trace
        self._answers: dict[int, asyncio.Future[Report | None]] = {}
        self._stopping = False
        self._obituaries: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        facts = self.aggregate.facts
        for core in self.cores:
            core.on_report, core.on_lost = self._hear, self._lose
        try:
            prepared = await self._ask(self._orders, PREPARE_LIMIT_S)
            if self._broken(prepared):
                return
            answers = [a for a in prepared if isinstance(a, Prepared)]
            facts.prepare_s = max(a.seconds for a in answers)
            wrote = answers[0].context
            if not self._stopping:
                facts.state = "running"
                done = await self._ask([Go(wrote)] * len(self.cores), self._limit_s())
                self._collect(done)
            if self.plan.teardown:
                facts.state = "stopping"
                (answer,) = await self._ask([Teardown()], TEARDOWN_LIMIT_S)
                if isinstance(answer, TornDown) and answer.error:
                    self.warnings.append(f"{self.plan.name}: {answer.error}")
        finally:
            if self._obituaries:
                await asyncio.wait(self._obituaries)
            for core in self.cores:
                core.on_report = core.on_lost = None
            facts.state = "finished"

    def pause(self) -> None:
        if self.aggregate.facts.state == "running":
            self._tell_all(Pause())
            self.aggregate.facts.state = "paused"
            self.aggregate.mark("paused")

    def resume(self) -> None:
        if self.aggregate.facts.state == "paused":
            self._tell_all(Resume())
            self.aggregate.facts.state = "running"
            self.aggregate.mark("resumed")

    def scale(self, delta: int) -> None:
        """Spread a change of VUs over the cores."""
        if self._running() and delta:
            sign = 1 if delta > 0 else -1
            for core, share in zip(self.cores, split_vus(abs(delta), len(self.cores)), strict=True):
                core.send(Scale(sign * share))
            noun = "VU" if abs(delta) == 1 else "VUs"
            self.aggregate.mark(f"{'added' if delta > 0 else 'removed'} {abs(delta)} {noun}")

    def stop(self, *, now: bool = False) -> None:
        self._stopping = True
        if self.aggregate.facts.state != "finished":
            self.aggregate.facts.state = "stopping"
        self._tell_all(Stop(now))
        limit_s = STOP_SLACK_S if now else self.plan.load.graceful_stop_s + STOP_SLACK_S
        asyncio.get_running_loop().call_later(limit_s, self._kill_unanswering)

    def _kill_unanswering(self) -> None:
        for core in self.cores:
            waiting = self._answers.get(core.number)
            if waiting is not None and not waiting.done():
                core.kill()

    def _running(self) -> bool:
        return self.aggregate.facts.state in ("running", "paused")

    def _tell_all(self, command: Pause | Resume | Stop) -> None:
        for core in self.cores:
            core.send(command)

    def _limit_s(self) -> float:
        """Seconds, pauses left out, after which a generator that is not done must be stuck."""
        load = self.plan.load
        planned_s = load.planned_seconds
        if planned_s is None:
            assert isinstance(load, (SharedIterations, PerVUIterations))
            planned_s = load.max_duration_s
        return load.start_time_s + load.warmup_s + planned_s + load.graceful_stop_s + STUCK_SLACK_S

    async def _ask(self, commands: Sequence[Command], limit_s: float) -> list[Report | None]:
        """Send one command to each core and wait for each one's final answer; None: it died."""
        loop = asyncio.get_running_loop()
        asked = self.cores[: len(commands)]
        for core, command in zip(asked, commands, strict=True):
            answer = self._answers[core.number] = loop.create_future()
            if core.lost:
                self._lose(core)
                answer.set_result(None)
            core.send(command)
        pending = [self._answers[core.number] for core in asked]
        left_s = limit_s
        while left_s > 0 and (await asyncio.wait(pending, timeout=GLANCE_S))[1]:
            if self.aggregate.facts.state != "paused":
                left_s -= GLANCE_S
        self._kill_unanswering()
        return [await answer for answer in pending]

    def _hear(self, core: Core, report: Report) -> None:
        if isinstance(report, Progress):
            self.aggregate.advance(report.at_s)
            self.aggregate.apply(core.number, report.delta, report.at_s)
        elif isinstance(report, Trace):
            self._on_trace(report.text)
        else:
            self._answers[core.number].set_result(report)

    def _lose(self, core: Core) -> None:
        self.aggregate.gone(core.number)
        self._obituaries.append(asyncio.create_task(self._mourn(core, self.aggregate.elapsed_s)))

    async def _mourn(self, core: Core, at_s: float) -> None:
        share = core.number - self.cores[0].number
        vus = self._orders[share].load.peak_vus
        total = sum(order.load.peak_vus for order in self._orders)
        ending = await core.obituary()
        self.lost.append(
            f"generator process {core.pid} of {self.plan.name} {ending} at {at_s:.1f}s: "
            f"{vus} of {total} VUs lost"
        )
        self.aggregate.mark(f"generator process {core.pid} {ending}")
        answer = self._answers.get(core.number)
        if answer is not None and not answer.done():
            answer.set_result(None)
        # Half a load is not the test that was asked for: end it with what there is.
        if not self._stopping:
            self.stop()

    def _broken(self, answers: list[Report | None]) -> bool:
        for answer in answers:
            if isinstance(answer, Failed):
                kind = BadInput if answer.bad_input else RunFailed
                self.failure = kind(answer.message, answer.hint)
                self.failure_detail = answer.detail
                self.aggregate.facts.error = answer.message
                return True
        if any(answer is None for answer in answers):
            self.aggregate.facts.error = "; ".join(self.lost) or "a generator process died"
            return True
        return False

    def _collect(self, answers: list[Report | None]) -> None:
        self._broken([a for a in answers if isinstance(a, Failed)])
        done = [answer for answer in answers if isinstance(answer, Done)]
        for core in self.cores:
            self.aggregate.gone(core.number)
        for answer in done:
            _keep_newest(self.context, answer.context)
            _keep_newest(self.provided, answer.provided)
            self.warnings.extend(f"{self.plan.name}: {text}" for text in answer.warnings)
            if answer.error and not self.aggregate.facts.error:
                self.aggregate.facts.error = f"{self.plan.name}: {answer.error}"
        if done:
            self.aggregate.facts.vus_max = sum(answer.peak_vus for answer in done)
            self.aggregate.advance(max(answer.measured_s for answer in done))


def _keep_newest(values: Values, more: Values) -> None:
    """Where several cores provide one key, the highest (stamp, core) wins."""
    for key, stamped in more.items():
        known = values.get(key)
        if known is None or (stamped.stamp, stamped.core) > (known.stamp, known.core):
            values[key] = stamped
