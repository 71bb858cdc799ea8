"""The parts of this worker: what managers command, what their lives ask for, carried out.

A command with an old token or of an old term is refused, an equal one gets the answer it got
before. Handlers never wait: what takes time is a task, and whichever way it goes the cores of the
part come back.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from hyperscale.cluster.fencing import Fence, FenceGuard, Ruling
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.records import Part
from hyperscale.errors import HyperscaleError
from hyperscale.metrics.delta import Delta, movement
from hyperscale.nodes.protocol.parts import (
    AskParts,
    DispatchAnswer,
    DispatchPart,
    HeldParts,
    PartAnswer,
    PartEnd,
    PartEvent,
    PartStatus,
    StartPart,
    SteerPart,
    TearDownPart,
)
from hyperscale.nodes.worker.cores import Cores
from hyperscale.nodes.worker.health import DrainState
from hyperscale.nodes.worker.held_part import (
    ContextVersions,
    HeldPart,
    IdleClock,
    check_values,
    failed,
    portable,
)
from hyperscale.nodes.worker.outbox import Outbox
from hyperscale.nodes.worker.part_life import (
    Begin,
    Effect,
    Kill,
    PartLife,
    PartTimeouts,
    RunTeardown,
    Steer,
    TellEnd,
    TellReady,
    TellTornDown,
)
from hyperscale.nodes.worker.reporting import PartView, ReportBuffer
from hyperscale.nodes.worker.runner import Runner
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.runtime import logs
from hyperscale.runtime.host import Host
from hyperscale.wire.serving import Call, Handler

Key = tuple[Part, Fence]


class Parts:
    """`on_change` is called when there is something to tell, `on_numbers` when a part did more,
    `on_term` with every term heard and who spoke of it: it says whether that is the present one.
    `lease_s` is how long load may run from now."""

    def __init__(
        self,
        host: Host,
        settings: WorkerSettings,
        runner: Runner,
        outbox: Outbox,
        buffer: ReportBuffer,
        on_change: Callable[[], None],
        on_numbers: Callable[[], None],
        on_term: Callable[[int, str], bool],
        lease_s: Callable[[], float],
    ) -> None:
        self.cores: Cores[Key] = Cores(settings.cores)
        self.drain_state = DrainState()
        self._host = host
        self._worker = settings.node.id
        self._runner = runner
        self._outbox = outbox
        self._buffer = buffer
        self._on_change = on_change
        self._on_numbers = on_numbers
        self._on_term = on_term
        self._lease_s = lease_s
        self._timeouts = PartTimeouts(
            prepare_s=settings.prepare_s,
            start_wait_s=settings.start_wait_s,
            kill_grace_s=settings.kill_grace_s,
            cut_grace_s=settings.cut_grace_s,
            teardown_s=settings.teardown_s,
            hold_s=settings.hold_s,
        )
        # Keys are repr() of parts: what str() says, a job and a workflow with '/' could say too.
        self._guard: FenceGuard[DispatchAnswer] = FenceGuard(settings.tombstone_s)
        self._held: dict[Key, HeldPart] = {}
        self._versions = ContextVersions()
        self._closing = 0
        self._log = logs.logger("worker", node_id=self._worker)

    # -- reading -----------------------------------------------------------------------------

    @property
    def handlers(self) -> dict[type[Any], Handler]:
        return {
            DispatchPart: self.on_dispatch,
            StartPart: self.on_start,
            SteerPart: self.on_steer,
            TearDownPart: self.on_tear_down,
            AskParts: self.on_ask,
        }

    @property
    def draining(self) -> bool:
        """It takes nothing new."""
        return bool(self.drain_state.off)

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing will; parts kept for their teardown are over too."""
        return not any(one.life.live for one in self._held.values())

    @property
    def empty(self) -> bool:
        return not self._held and not self._closing

    def __len__(self) -> int:
        return len(self._held)

    def held(self) -> list[PartView]:
        now = self._host.clock.now()
        return [one.held(now) for one in self._held.values()]

    def statuses(self) -> tuple[PartStatus, ...]:
        """All there are, also those that are over while nobody has settled their end yet."""
        known = [one.status() for one in self._held.values()]
        untold = [
            PartStatus(part=part, fence=fence, state="ended")
            for part, fence in self._outbox.parts()
            if (part, fence) not in self._held
        ]
        return (*known, *untold)

    def progress(self) -> float:
        """Of the one that is furthest: what a busy worker shows for its time."""
        return max((one.progress for one in self._held.values()), default=0.0)

    def snapshot(self, key: Key) -> bytes | None:
        one = self._held.get(key)
        return None if one is None else one.running.snapshot()

    # -- commands ----------------------------------------------------------------------------

    def on_dispatch(self, call: Call, order: DispatchPart) -> DispatchAnswer:
        now = self._host.clock.now()
        if not self._on_term(order.term, call.peer.node_id):
            return self._refuse("a leader of a later term has spoken")
        self._guard.purge(now)
        verdict = self._guard.admit(now, repr(order.part), order.fence)
        if verdict.ruling is Ruling.STALE:
            return self._refuse(f"a later attempt is known: {tuple(verdict.highest or ())}")
        if verdict.ruling is Ruling.FULL:
            return self._refuse("this worker remembers too many parts", no_room=True)
        if verdict.ruling is Ruling.REPEAT and verdict.answer is not None:
            return verdict.answer
        answer = self._take_on(now, order)
        self._guard.answer(repr(order.part), order.fence, answer)
        if not answer.accepted:
            self._guard.finish(now, repr(order.part), order.fence)
        with logs.correlated(correlation_id=order.correlation_id):
            self._log.info(
                "part accepted" if answer.accepted else "part refused",
                part=str(order.part),
                attempt=order.fence.attempt,
                cores=order.cores,
                reason=answer.reason,
            )
        return answer

    def on_start(self, call: Call, order: StartPart) -> PartAnswer:
        def start(one: HeldPart) -> list[Effect]:
            one.context, one.run_age_s = order.context, order.run_age_s
            return one.life.start(self._host.clock.now())

        return self._command(call, order, start)

    def on_steer(self, call: Call, order: SteerPart) -> PartAnswer:
        def steer(one: HeldPart) -> list[Effect]:
            now = self._host.clock.now()
            return one.life.steer(now, order.action, order.amount, order.reason)

        return self._command(call, order, steer)

    def on_tear_down(self, call: Call, order: TearDownPart) -> PartAnswer:
        return self._command(call, order, lambda one: one.life.tear_down(self._host.clock.now()))

    def on_ask(self, call: Call, ask: AskParts) -> HeldParts:
        self._on_term(ask.term, call.peer.node_id)
        return HeldParts(
            worker=self._worker,
            incarnation=call.connection.endpoint.introduction.identity.incarnation,
            total_cores=self.cores.total,
            free_cores=self.cores.free,
            parts=self.statuses(),
        )

    def _command(
        self,
        call: Call,
        order: StartPart | SteerPart | TearDownPart,
        act: Callable[[HeldPart], list[Effect]],
    ) -> PartAnswer:
        if not self._on_term(order.term, call.peer.node_id):
            return PartAnswer(known=False, reason="a leader of a later term has spoken")
        one = self._held.get((order.part, order.fence))
        if one is None:
            return PartAnswer(known=False, reason="there is no such part here")
        self._do(one, act(one))
        return PartAnswer(known=True, state=one.state)

    def _refuse(self, reason: str, *, no_room: bool = False) -> DispatchAnswer:
        return DispatchAnswer(
            accepted=False, reason=reason, no_room=no_room, free_cores=self.cores.free
        )

    def _take_on(self, now: float, order: DispatchPart) -> DispatchAnswer:
        """A fresh order: room is taken and given back should anything go wrong."""
        key = (order.part, order.fence)
        older = [one for one in self._held.values() if one.part == order.part]
        for one in older:
            self._do(one, one.life.unwanted(now, "a later attempt took its place"))
        if self.draining:
            return self._refuse(self.drain_state.off, no_room=True)
        if not self._lease_s():
            return self._refuse("this worker is cut off from its managers", no_room=True)
        if self._outbox.full:
            return self._refuse("too many results wait for a leader", no_room=True)
        if not 1 <= order.cores <= order.total_cores - order.first_core or order.first_core < 0:
            return self._refuse(f"{order.cores} cores from {order.first_core} make no sense")
        if self._versions.is_old(order.part.job_id, order.context_version):
            return self._refuse(f"context version {order.context_version} is out of date")
        slots = order.slots or self.cores.unshared(order.cores)
        if len(set(slots)) != order.cores:
            return self._refuse(f"{order.cores} cores in the slots {slots} make no sense")
        if not self.cores.take(key, order.part.job_id, slots):
            free = self.cores.free
            return self._refuse(f"{order.cores} cores are asked for, {free} free", no_room=True)
        try:
            running = self._runner.run(order, slots, partial(self._progressed, key))
        except (HyperscaleError, OSError) as error:
            self.cores.release(key)
            return self._refuse(f"it cannot be run here: {error}")
        self._versions.note(order.part.job_id, order.context_version)
        life = PartLife(
            now,
            limit_s=order.limit_s,
            tears_down=order.facts.tears_down,
            vus=order.facts.load.peak_vus,
            timeouts=self._timeouts,
        )
        one = HeldPart(
            part=order.part,
            fence=order.fence,
            worker=self._worker,
            correlation_id=order.correlation_id,
            planned_s=order.facts.planned_s,
            resume_at_s=order.resume_at_s,
            cores=order.cores,
            life=life,
            running=running,
            idle_clock=IdleClock(now),
        )
        self._held[key] = one
        self._buffer.open(order.part, order.fence)
        self._spawn(one, "prepare", self._prepare(one))
        return DispatchAnswer(accepted=True, free_cores=self.cores.free)

    # -- what the worker finds ---------------------------------------------------------------

    def tick(self, now: float) -> None:
        for one in list(self._held.values()):
            self._do(one, one.life.tick(now))
            self._give_back(one)

    def cut_off(self, now: float, reason: str) -> int:
        """End all load; returns how many parts it concerns."""
        live = [one for one in self._held.values() if one.life.live]
        for one in live:
            self._do(one, one.life.cut_off(now, reason))
        return len(live)

    def in_touch(self, now: float) -> None:
        """Managers answer: load may go on for a while, and who ended waits for their word."""
        for one in self._held.values():
            if one.life.live:
                one.running.lease(self._lease_s())
            else:
                one.life.kept(now)

    def unwanted(self, now: float, parts: tuple[Key, ...]) -> None:
        for part, fence in parts:
            one = self._held.get((part, fence))
            if one is not None:
                self._do(one, one.life.unwanted(now, "no manager waits for it"))

    def settled(self, now: float, event: PartEvent) -> None:
        """A leader has settled an event."""
        one = self._held.get((event.part, event.fence))
        if one is not None and isinstance(event, PartEnd):
            self._do(one, one.life.settled(now))

    # -- effects -----------------------------------------------------------------------------

    def _do(self, one: HeldPart, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, TellReady):
                self._outbox.put(self._host.clock.now(), one.prepared())
            elif isinstance(effect, Begin):
                one.running.lease(self._lease_s())
                one.running.start(one.context, one.run_age_s)
                self._spawn(one, "run", self._run(one))
            elif isinstance(effect, Steer):
                one.running.steer(effect.action, effect.amount)
            elif isinstance(effect, Kill):
                one.running.kill()
            elif isinstance(effect, TellEnd):
                self._tell_end(one, effect)
            elif isinstance(effect, RunTeardown):
                self._spawn(one, "tear down", self._tear_down(one))
            elif isinstance(effect, TellTornDown):
                self._outbox.put(self._host.clock.now(), one.torn_down(effect.warning))
            else:
                self._free(one)
        if effects:
            self._on_change()

    def _tell_end(self, one: HeldPart, decided: TellEnd) -> None:
        invariant(not one.life.live, "a part tells its end when it makes no more load")
        end = one.end(decided)
        self._buffer.drop(one.part, one.fence)
        self._outbox.put(self._host.clock.now(), end)
        self._give_back(one)
        with logs.correlated(correlation_id=one.correlation_id):
            self._log.info(
                "part ended",
                part=str(one.part),
                outcome=end.outcome,
                error=end.error,
                measured_s=round(end.measured_s, 3),
                lost=list(end.lost),
            )

    def _give_back(self, one: HeldPart) -> None:
        """Cores without load are free, also of a part that goes on elsewhere on this machine, or
        whose processes are kept for its teardown."""
        done = one.running.cores_done if one.life.live else one.cores
        if done > one.cores_done:
            one.cores_done = done
            self.cores.release(one.key, keep=one.cores - done)
            self._on_change()

    def _free(self, one: HeldPart) -> None:
        invariant(one.cores_done == one.cores, "the cores of a part come back before it is gone")
        del self._held[one.key]
        self.cores.release(one.key)
        self._buffer.drop(one.part, one.fence)
        self._guard.finish(self._host.clock.now(), repr(one.part), one.fence)
        for task in one.tasks:
            task.cancel()  # also the one that says this: it is at its end
        self._closing += 1
        self._host.tasks.spawn(f"close {one.part}", self._close(one))

    async def _close(self, one: HeldPart) -> None:
        try:
            await one.running.close()
        finally:
            self._closing -= 1
            self._on_change()

    # -- tasks -------------------------------------------------------------------------------

    def _spawn(self, one: HeldPart, what: str, work: Coroutine[Any, Any, None]) -> None:
        name = f"{what} {one.part} {one.fence.epoch}.{one.fence.attempt}"
        one.tasks.append(self._host.tasks.spawn(name, work))

    async def _prepare(self, one: HeldPart) -> None:
        try:
            one.ready = await one.running.prepare()
            check_values(one.part.workflow, one.ready.context)
        except Exception as error:  # noqa: BLE001 - whatever it is, the cores must come back
            one.ended = failed(error)
            self._do(one, one.life.broken(self._host.clock.now()))
            return
        self._do(one, one.life.ready(self._host.clock.now()))

    async def _run(self, one: HeldPart) -> None:
        try:
            one.ended = portable(one.part.workflow, await one.running.ended())
        except Exception as error:  # noqa: BLE001 - whatever it is, the cores must come back
            one.ended = failed(error)
        self._do(one, one.life.over(self._host.clock.now()))

    async def _tear_down(self, one: HeldPart) -> None:
        try:
            warning = await one.running.teardown()
        except Exception as error:  # noqa: BLE001 - whatever it is, the cores must come back
            warning = f"teardown() could not be run: {error!r}"
        self._do(one, one.life.torn_down(self._host.clock.now(), warning))

    def _progressed(self, key: Key, at_s: float, core: int, delta: Delta) -> None:
        self._buffer.add(*key, core, delta)
        one = self._held.get(key)
        if one is not None:
            one.idle_clock.move(movement(delta))
        self._on_numbers()
