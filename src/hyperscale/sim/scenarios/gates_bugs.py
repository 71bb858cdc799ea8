"""Gates with bugs that a checker must catch."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from hyperscale.cluster.datacenters import Watch
from hyperscale.metrics.results import decode, encode
from hyperscale.nodes.gate.barrier import Barrier
from hyperscale.nodes.gate.client_api import GateApi
from hyperscale.nodes.gate.datacenter_run import DatacenterRun
from hyperscale.nodes.gate.datacenters import Datacenters
from hyperscale.nodes.gate.events import AnyEvent, Begun, Completed, Created, Ended, Lost, Withdrawn
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.ledger import Ledger
from hyperscale.nodes.gate.owner import OwnedJob, Owner
from hyperscale.nodes.protocol.jobs import JobUpdate

# They show where nothing else is wrong than a line.
LINE_BUGS: Final = {
    "own-line-unsuspected": "LostWithReason",
    "never-handed-over": "LostToAll",
}
PLANTED_BUGS: Final = {
    "ack-before-commit": "HeldBeforeAck",
    "key-is-no-job": "OneJobPerKey",
    "own-end": "OneEnd",
    "cancelled-when-told": "NothingAfterTheEnd",
    "numbers-left-behind": "TrueNumbers",
    "withdrawn-untold": "WithdrawnIsOver",
    **LINE_BUGS,
    "first-prepared-begins": "BeginsTogether",
    "told-is-forgotten": "KeepsWhatWasTold",
}


class AckBeforeCommit(Ledger):
    async def append(self, job_id: str, event: AnyEvent) -> None:
        if isinstance(event, Created):
            self._applied_early(job_id, event)
            self._host.tasks.spawn(f"append to {job_id}", super().append(job_id, event))
            return
        await super().append(job_id, event)

    def _applied_early(self, job_id: str, event: Created) -> None:
        self.jobs.apply(self._host.clock.now(), job_id, event)


class KeyIsNoJob(GateApi):
    def _job_id(self, ask: Any) -> str:
        return str(ask.job_id)


class OwnEnd(GateApi):
    """Each gate tells the end as it would have computed it."""

    def _last(self, job: GateJob, completed: Completed) -> JobUpdate:
        results = decode(completed.results)
        results.environment.host = self._ledger.me
        return super()._last(job, msgspec.structs.replace(completed, results=encode(results)))


class CancelledWhenTold(DatacenterRun):
    """A job is over as soon as somebody wants that."""

    async def run(self) -> Ended | Lost:
        running = asyncio.ensure_future(super().run())
        try:
            while not running.done() and not self._job.ending:
                await self._clock.sleep(0.2)
            return running.result() if running.done() else Ended(self.name, "cancelled")
        finally:
            running.cancel()


class NumbersLeftBehind(DatacenterRun):
    async def run(self) -> Ended | Lost:
        return msgspec.structs.replace(await super().run(), states={})


class ToldIsForgotten(DatacenterRun):
    def _final(self, last: JobUpdate) -> dict[str, bytes]:
        return dict(last.states)

    def _lost(self, reason: str) -> Lost:
        return msgspec.structs.replace(super()._lost(reason), states={})


class FirstPreparedBegins(Barrier):
    async def run(self) -> None:
        while not any(run.is_prepared for run in self._waited_for()):
            await self._clock.sleep(0.05)
        if self._job.begun is None:
            await self._ledger.append_surely(self._job.job_id, Begun(tuple(self._runs)))
        await asyncio.gather(*(run.begin(0.0) for run in self._waited_for()))


class WithdrawnUntold(Owner):
    async def _withdraw(self, job: GateJob, name: str) -> None:
        await self._ledger.append_surely(job.job_id, Withdrawn(name))


class OwnLineUnsuspected(Watch):
    """Whatever is silent is lost."""

    def line_in_doubt(self, now: float) -> bool:
        return False

    def reached_by(self, now: float, *names: str) -> list[str]:
        return []


class NeverHandedOver(Watch):
    """Nobody asks what other gates reach."""

    def reached_by(self, now: float, *names: str) -> list[str]:
        return []


class _Unsuspecting(Datacenters):
    watch_class = OwnLineUnsuspected


class _Keeping(Datacenters):
    watch_class = NeverHandedOver


class _HastyJob(OwnedJob):
    run_class = CancelledWhenTold


class _EarlyJob(OwnedJob):
    barrier_class = FirstPreparedBegins


class _ForgetfulJob(OwnedJob):
    run_class = ToldIsForgotten


class _BareJob(OwnedJob):
    run_class = NumbersLeftBehind


class _HastyOwner(Owner):
    owned_class = _HastyJob


class _EarlyOwner(Owner):
    owned_class = _EarlyJob


class _ForgetfulOwner(Owner):
    owned_class = _ForgetfulJob


class _BareOwner(Owner):
    owned_class = _BareJob


class PlantedGates:
    """Gates of a class of their own, so that others in this process stay whole."""

    def __init__(self, bug: str) -> None:
        class Planted(Gate):
            ledger_class = AckBeforeCommit if bug == "ack-before-commit" else Ledger
            api_class = {"key-is-no-job": KeyIsNoJob, "own-end": OwnEnd}.get(bug, GateApi)
            owner_class = {
                "cancelled-when-told": _HastyOwner,
                "numbers-left-behind": _BareOwner,
                "withdrawn-untold": WithdrawnUntold,
                "first-prepared-begins": _EarlyOwner,
                "told-is-forgotten": _ForgetfulOwner,
            }.get(bug, Owner)
            datacenters_class = {
                "own-line-unsuspected": _Unsuspecting,
                "never-handed-over": _Keeping,
            }.get(bug, Datacenters)

        self.gate = Planted if bug else Gate
