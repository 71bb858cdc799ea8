"""Managers, workers and clients with the bugs that such systems have had; a checker must catch
each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.effects import Append, Dispatch, Effect, MakeResults, Start
from hyperscale.cluster.jobs.inputs import Ended, PartReport
from hyperscale.cluster.jobs.pool import Worker as PoolWorker
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Finished,
    JobRecord,
    Part,
    PartEnded,
    Placement,
    Submitted,
)
from hyperscale.cluster.jobs.state import JobState
from hyperscale.engine.thresholds import Judge
from hyperscale.ledger.records import RecordsError
from hyperscale.metrics import exported
from hyperscale.nodes.client.picture import Picture, _Workflow
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.part_end import decode_end, encode_end
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.protocol.jobs import Outline
from hyperscale.nodes.protocol.parts import Progress
from hyperscale.nodes.worker.held_part import HeldPart
from hyperscale.nodes.worker.part_life import Effect as LifeEffect
from hyperscale.nodes.worker.part_life import Kill, Steer
from hyperscale.nodes.worker.runner import Runner
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.nodes.worker.worker import Worker
from hyperscale.sim.host import SimHost

CANARIES: Final = {
    "ack-early": "HeldBeforeAck",
    "forget-keys": "OneJobPerKey",
    "dispatch-early": "OnlyTheNewest",
    "start-at-once": "Barrier",
    "no-fence": "OneLoad",
    "decide-alone": "ContextHeld",
    "say-cancelled": "NothingRunsAfterTheEnd",
    "own-ending": "OneEnd",
    "count-twice": "Totals",
    "show-anything": "NeverBackwards",
    "leak-cores": "AllFree",
    "book-twice": "WithinCores",
    "leave-none-alone": "Alone",
    "never-conclude": "liveness",
    "leave-at-once": "Leaving",
    "forget-early": "Kept",
    "forget-never": "Kept",
    "judge-nothing": "Verdict",
    "abort-nothing": "Verdict",
    "pause-nothing": "PausedStays",
    "fence-by-probes": "OneLoad",
    "wait-for-probes": "UnderCommand",
    "outlive": "UnderCommand",
    "call-it-complete": "TrueCoverage",
    "forget-heard": "HeardIsKept",
    "progress-by-messages": "StuckIfHanging",
    "limits-at-once": "LimitsInTime",
    "leave-lost-load": "TakenOver",
    "squeeze-anybody": "ToSpare",
}


class AcksEarly(Manager):
    """A client is answered as soon as the record is on its way."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        super().carry_out(effects)
        for effect in effects:
            if isinstance(effect, Append) and isinstance(effect.record, Submitted):
                self.accept(effect.record.job_id, None)


class ForgetsKeys(Manager):
    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        submit = self.jobs.submit

        def keyless(now: float, record: Submitted) -> Any:
            return submit(now, msgspec.structs.replace(record, idempotency_key=""))

        self.jobs.submit = keyless  # type: ignore[method-assign]


class StartsAtOnce(Manager):
    """No barrier: a part is started when it is ready, whatever the others are."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        prepared = self.jobs.prepared

        def impatient(now: float, part: Part, *more: Any) -> Any:
            settled, effects = prepared(now, part, *more)
            placement = self.jobs.replicated.placement(part)
            return settled, effects + ([Start(placement, b"")] if placement else [])

        self.jobs.prepared = impatient  # type: ignore[method-assign,assignment]


class DispatchesEarly(Manager):
    """Parts are on their way before a majority knows where to."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        super().carry_out(effects)
        for effect in effects:
            if isinstance(effect, Append) and isinstance(effect.record, Dispatched):
                for placement in effect.record.placements:
                    self.commands.dispatch(Dispatch(placement, effect.record.total_cores, False))


class DecidesAlone(Manager):
    """It believes what ended, and gives out the layers after it, before a majority holds it."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        super().carry_out(effects)
        for effect in effects:
            if isinstance(effect, Append) and self._believes(effect.record):
                self.carry_out(self.jobs.applied(self.now(), effect.record))

    def _believes(self, record: JobRecord) -> bool:
        job = self.jobs.job(record.job_id)
        if isinstance(record, Dispatched) and job is not None:
            return job.workflows[record.workflow].layer > 0
        return isinstance(record, PartEnded)


class OwnEnding(Manager):
    """Each manager has an end of its own for a job."""

    def _measured(self, record: JobRecord) -> None:
        job = self.jobs.job(record.job_id)
        if isinstance(record, Finished) and job is not None and job.finished is not None:
            term = b" " * self.leadership.term
            job.finished = msgspec.structs.replace(job.finished, results=record.results + term)
        super()._measured(record)


class CountsTwice(Manager):
    """What a lost part had reported is taken twice."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        close = self.live.close

        def twice(part: Part, fence: Fence) -> tuple[float, int, bytes]:
            at_s, iterations, data = close(part, fence)
            if data:
                state = exported.decode(data)
                state.requests += state.requests
                data = exported.encode(state)
            return at_s, iterations, data

        self.live.close = twice  # type: ignore[method-assign]


class CallsItComplete(Manager):
    """A part whose generator process died has ended, and all of its load counts."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        ended = self.jobs.ended

        def kindly(now: float, end: Ended) -> Any:
            told = decode_end(end.result)
            if told.lost:
                state = exported.decode(told.state)
                state.offered = 1e9
                told = msgspec.structs.replace(
                    told, outcome="completed", error="", lost=(), state=exported.encode(state)
                )
                end = replace(end, outcome="completed", error="", lost="", result=encode_end(told))
            return ended(now, end)

        self.jobs.ended = kindly  # type: ignore[method-assign]


class ForgetsHeard(Manager):
    """What the leader before had heard of a part is lost with the part."""

    def _heard_of(self, placement: Placement) -> tuple[float, int, bytes]:
        return self.live.close(placement.part, placement.fence)


class NeverConcludes(Manager):
    """All parts are in, and nobody says so."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        super().carry_out([one for one in effects if not isinstance(one, MakeResults)])


class ForgetsEarly(Manager):
    """What is over need not be kept."""

    def _measured(self, record: JobRecord) -> None:
        super()._measured(record)
        if isinstance(record, Finished):
            self.host.tasks.spawn("forget", self._forget(record.job_id))

    async def _forget(self, job_id: str) -> None:
        with suppress(RecordsError):
            await self.records.forget(job_id)


class ForgetsNever(Manager):
    def _forgotten(self, job_id: str) -> None:
        """It stays where it is."""


class JudgesNothing(Manager):
    def judges(self, job: JobState) -> list[Judge]:
        return []


class AbortsNothing(Manager):
    """A threshold is crossed, and the load goes on."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        steer = self.jobs.steer

        def unmoved(*args: Any, **more: Any) -> Any:
            return (None, []) if more.get("by") == "threshold" else steer(*args, **more)

        self.jobs.steer = unmoved  # type: ignore[method-assign]


class CountsMessages(Manager):
    """Whoever reports numbers is at work, whoever does not is not."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        progressed = self.worker_api._progressed
        told_at: dict[tuple[Part, Fence], float] = {}

        def by_messages(progress: Progress) -> PartReport:
            about, now = (progress.part, progress.fence), self.now()
            since = told_at.setdefault(about, now)
            if progress.deltas:
                told_at[about] = since = now
            return replace(progressed(progress), idle_s=now - since)

        self.worker_api._progressed = by_messages  # type: ignore[method-assign]


class LimitsAtOnce(Manager):
    """A new leader judges before it has heard anybody, and for all the time that has passed."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        leader = self.jobs._leader
        leader.led.at = lambda now: now  # type: ignore[method-assign]
        leader.hears_until = lambda job: 0.0  # type: ignore[method-assign]


class LeavesAtOnce(Worker):
    async def drain(self) -> None:
        """Nobody waits for what is under way."""


class PausesNothing(Worker):
    """A pause is confirmed, and the load goes on."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        do = self.parts._do

        def deaf(one: HeldPart, effects: list[LifeEffect]) -> None:
            do(one, [effect for effect in effects if effect != Steer("pause")])

        self.parts._do = deaf  # type: ignore[method-assign]


class Unfenced(Worker):
    """Goes on for ever without its managers."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        self.contact._fence_s = 1e9


class FencedByProbes(Worker):
    """Managers that answer probes are contact, whether or not they could command it."""

    def _look(self) -> None:
        super()._look()
        members = self.node.membership.core.members()
        if any(one.node.role == "manager" and one.live for one in members):
            self.contact.led(self._host.clock.now(), "", 0)


class Outlives(Worker):
    """A cancellation is not heard, however it comes, and generators have no leash."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        do = self.parts._do

        def deaf(one: HeldPart, effects: list[LifeEffect]) -> None:
            one.running.leash = lambda seconds: None  # type: ignore[method-assign]
            if one.life._halted is not None and one.life._halted[0] == "cancelled":
                effects = [effect for effect in effects if effect != Steer("cancel")]
                effects = [effect for effect in effects if not isinstance(effect, Kill)]
                one.running.close = _nothing  # type: ignore[method-assign]
            do(one, effects)

        self.parts._do = deaf  # type: ignore[method-assign]


class SaysCancelled(Worker):
    """A part that is told to end is said to have ended, and its processes are left alone."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        do = self.parts._do

        def lie(one: HeldPart, effects: list[LifeEffect]) -> None:
            cancel = Steer("cancel")
            do(one, [effect for effect in effects if effect != cancel])
            if cancel in effects:
                one.running.close = _nothing  # type: ignore[method-assign]
                do(one, one.life.over(host.clock.now()))

        self.parts._do = lie  # type: ignore[method-assign]


async def _nothing() -> None:
    pass


class LeaksCores(Worker):
    """One in three times a part ends, its cores stay taken."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        release = self.parts.cores.release
        owners: dict[Any, int] = {}

        def forget(owner: Any, keep: int = 0) -> None:
            number = owners.setdefault(owner, len(owners) + 1)
            if number % 3:
                release(owner, keep)

        self.parts.cores.release = forget  # type: ignore[method-assign]


class TakesAnything(Worker):
    """A part is taken, whatever else uses the cores."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        self.parts.cores._in_use = lambda: 0  # type: ignore[method-assign]


class BooksTwice(Manager):
    """All cores of a worker are free, whatever runs there."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        self.jobs.pool.free = lambda worker: worker.total  # type: ignore[method-assign]


class LeavesNobodyAlone(Manager):
    """A workflow that must run alone is placed like any other."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        self.jobs.pool.placements = lambda: iter(())  # type: ignore[method-assign]


class WaitsForProbes(Manager):
    """What a worker has is moved when the membership protocol has buried it, not before."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        gone_at = self.jobs.pool.gone_at

        def buried_at(worker: PoolWorker) -> float:
            return gone_at(worker) if worker.dead_at is not None else float("inf")

        self.jobs.pool.gone_at = buried_at  # type: ignore[method-assign]


class LeavesLostLoad(Manager):
    """Nobody is asked to share a core, whatever a job wants."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        self.jobs.pool.can_share = lambda now, worker: False  # type: ignore[method-assign]


class SqueezesAnybody(Manager):
    """Lost load goes where it finds room, however busy it is there."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        careless = replace(settings.jobs, squeeze_cpu_percent=1e9)
        super().__init__(host, replace(settings, jobs=careless))


class _Hasty(_Workflow):
    def _show(self, aggregate: Any) -> None:
        self.shown, self._catching_up = aggregate, None


class ShowsAnything(Picture):
    """The newest snapshot is shown, whatever was shown before."""

    def _begin(self, outline: Outline) -> None:
        for facts in outline.workflows:
            self._workflows[facts.name] = _Hasty(facts)


MANAGERS: Final[dict[str, type[Manager]]] = {
    "ack-early": AcksEarly,
    "forget-keys": ForgetsKeys,
    "start-at-once": StartsAtOnce,
    "dispatch-early": DispatchesEarly,
    "decide-alone": DecidesAlone,
    "own-ending": OwnEnding,
    "count-twice": CountsTwice,
    "never-conclude": NeverConcludes,
    "call-it-complete": CallsItComplete,
    "forget-heard": ForgetsHeard,
    "forget-early": ForgetsEarly,
    "forget-never": ForgetsNever,
    "judge-nothing": JudgesNothing,
    "abort-nothing": AbortsNothing,
    "book-twice": BooksTwice,
    "leave-none-alone": LeavesNobodyAlone,
    "wait-for-probes": WaitsForProbes,
    "progress-by-messages": CountsMessages,
    "limits-at-once": LimitsAtOnce,
    "leave-lost-load": LeavesLostLoad,
    "squeeze-anybody": SqueezesAnybody,
}
WORKERS: Final[dict[str, type[Worker]]] = {
    "no-fence": Unfenced,
    "say-cancelled": SaysCancelled,
    "leak-cores": LeaksCores,
    "book-twice": TakesAnything,
    "leave-at-once": LeavesAtOnce,
    "pause-nothing": PausesNothing,
    "fence-by-probes": FencedByProbes,
    "outlive": Outlives,
}


class Cast:
    """Which code plays the nodes: that of the house, but for one bug."""

    def __init__(self, canary: str) -> None:
        self.manager = MANAGERS.get(canary, Manager)
        self.worker = WORKERS.get(canary, Worker)
        self.picture = ShowsAnything if canary == "show-anything" else Picture
