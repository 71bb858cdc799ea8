"""Managers, workers and clients with the bugs that such systems have had; a checker must catch
each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.effects import Answer, Append, Dispatch, Effect, MakeResults, Start
from hyperscale.cluster.jobs.events import (
    Applied,
    Ended,
    Event,
    PartReport,
    Prepared,
    Steering,
    Submit,
)
from hyperscale.cluster.jobs.events import Steer as SteerJob
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
from hyperscale.ledger.records import RecordsError
from hyperscale.metrics import exported
from hyperscale.nodes.client.picture import Picture, _Workflow
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.part_end import decode_end, encode_end
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.protocol.jobs import Outline
from hyperscale.nodes.protocol.parts import Progress
from hyperscale.nodes.worker.worker import Worker
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenarios.cluster_worker_bugs import WORKERS

PLANTED_BUGS: Final = {
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
    "judge-nothing": "ThresholdsJudged",
    "abort-nothing": "ThresholdsJudged",
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


class Altered(Manager):
    """A manager whose decisions, or what it does about them, can be changed."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        self._decide, self._carry_out = self.core.receive, self.effects.carry_out
        self.core.receive = self.decide  # type: ignore[method-assign]
        self.effects.carry_out = self.carry_out  # type: ignore[method-assign]

    def decide(self, now: float, event: Event) -> list[Effect]:
        return self._decide(now, event)

    def carry_out(self, effects: Sequence[Effect]) -> None:
        self._carry_out(effects)


class AcksEarly(Manager):
    """A client is answered as soon as the record is on its way."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        held = self.job_log.held

        def at_once(record: JobRecord) -> asyncio.Future[None]:
            future = held(record)
            if isinstance(record, Submitted):
                future.set_result(None)
            return future

        self.job_log.held = at_once  # type: ignore[method-assign]


class ForgetsKeys(Altered):
    def decide(self, now: float, event: Event) -> list[Effect]:
        if isinstance(event, Submit):
            event = Submit(msgspec.structs.replace(event.record, idempotency_key=""))
        return super().decide(now, event)


class StartsAtOnce(Altered):
    """No barrier: a part is started when it is ready, whatever the others are."""

    def decide(self, now: float, event: Event) -> list[Effect]:
        effects = super().decide(now, event)
        placement = (
            self.jobs.replicated.placement(event.part) if isinstance(event, Prepared) else None
        )
        return effects + ([Start(placement, b"")] if placement else [])


class DispatchesEarly(Altered):
    """Parts are on their way before a majority knows where to."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        super().carry_out(effects)
        for effect in effects:
            if isinstance(effect, Append) and isinstance(effect.record, Dispatched):
                for placement in effect.record.placements:
                    self.commands.dispatch(Dispatch(placement, effect.record.total_cores, False))


class DecidesAlone(Altered):
    """It believes what ended, and gives out the layers after it, before a majority holds it."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        super().carry_out(effects)
        for effect in effects:
            if isinstance(effect, Append) and self._believes(effect.record):
                self.effects.receive(Applied(effect.record))

    def _believes(self, record: JobRecord) -> bool:
        job = self.jobs.job(record.job_id)
        if isinstance(record, Dispatched) and job is not None:
            return job.workflows[record.workflow].layer > 0
        return isinstance(record, PartEnded)


class Measuring(Manager):
    """A manager that does something of its own with each record that took effect."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        measured = self.applied_records.measured

        def more(record: JobRecord) -> None:
            self.on_record(record)
            measured(record)

        self.applied_records.measured = more  # type: ignore[method-assign]

    def on_record(self, record: JobRecord) -> None:
        raise NotImplementedError


class OwnEnding(Measuring):
    """Each manager has an end of its own for a job."""

    def on_record(self, record: JobRecord) -> None:
        job = self.jobs.job(record.job_id)
        if isinstance(record, Finished) and job is not None and job.finished is not None:
            term = b" " * self.leadership.term
            job.finished = msgspec.structs.replace(job.finished, results=record.results + term)


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


class CallsItComplete(Altered):
    """A part whose generator process died has ended, and all of its load counts."""

    def decide(self, now: float, event: Event) -> list[Effect]:
        told = decode_end(event.result) if isinstance(event, Ended) else None
        if isinstance(event, Ended) and told is not None and told.lost:
            state = exported.decode(told.state)
            state.offered = 1e9
            told = msgspec.structs.replace(
                told, outcome="completed", error="", lost=(), state=exported.encode(state)
            )
            event = msgspec.structs.replace(
                event, outcome="completed", error="", lost="", result=encode_end(told)
            )
        return super().decide(now, event)


class ForgetsHeard(Manager):
    """What the leader before had heard of a part is lost with the part."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)

        def alone(placement: Placement) -> tuple[float, int, bytes]:
            return self.live.close(placement.part, placement.fence)

        self.lost_parts.heard_of = alone  # type: ignore[method-assign]


class NeverConcludes(Altered):
    """All parts are in, and nobody says so."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        super().carry_out([one for one in effects if not isinstance(one, MakeResults)])


class ForgetsEarly(Measuring):
    """What is over need not be kept."""

    def on_record(self, record: JobRecord) -> None:
        if isinstance(record, Finished):
            self.host.tasks.spawn("forget", self._forget(record.job_id))

    async def _forget(self, job_id: str) -> None:
        with suppress(RecordsError):
            await self.records.forget(job_id)


class ForgetsNever(Manager):
    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        self.applied_records.forgotten = lambda job_id: None  # type: ignore[method-assign]


class JudgesNothing(Manager):
    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        self.thresholds.of = lambda job: []  # type: ignore[method-assign]


class AbortsNothing(Altered):
    """A threshold is crossed, and the load goes on."""

    def decide(self, now: float, event: Event) -> list[Effect]:
        if isinstance(event, SteerJob) and event.by == "threshold":
            return [Answer(Steering(accepted=False))]
        return super().decide(now, event)


class CountsMessages(Manager):
    """Whoever reports numbers is at work, whoever does not is not."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        part_report = self.worker_api.part_report
        told_at: dict[tuple[Part, Fence], float] = {}

        def by_messages(progress: Progress) -> PartReport:
            about, now = (progress.part, progress.fence), self.now()
            since = told_at.setdefault(about, now)
            if progress.deltas:
                told_at[about] = since = now
            return msgspec.structs.replace(part_report(progress), idle_s=now - since)

        self.worker_api.part_report = by_messages  # type: ignore[method-assign]


class LimitsAtOnce(Manager):
    """A new leader judges before it has heard anybody, and for all the time that has passed."""

    def __init__(self, host: SimHost, settings: ManagerSettings) -> None:
        super().__init__(host, settings)
        leader = self.core._leader
        leader.led.at = lambda now: now  # type: ignore[method-assign]
        leader.hears_until = lambda job: 0.0  # type: ignore[method-assign]


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


class PlantedNodes:
    """Which code plays the nodes: that of the package, but for one bug."""

    def __init__(self, planted_bug: str) -> None:
        self.manager = MANAGERS.get(planted_bug, Manager)
        self.worker = WORKERS.get(planted_bug, Worker)
        self.picture = ShowsAnything if planted_bug == "show-anything" else Picture
