"""What a lost part had reported, to us or to the leader before: it is recorded with its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperscale.cluster.jobs.effects import CollectReported
from hyperscale.cluster.jobs.events import Heard, ReportedCollected
from hyperscale.cluster.jobs.records import Placement
from hyperscale.metrics.exported import DamagedState, spread
from hyperscale.nodes.manager import part_end
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.job_log import JobLog
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.manager.progress_backup import ProgressBackup
from hyperscale.nodes.protocol.parts import PartEnd

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class LostParts:
    def __init__(
        self,
        live: Live,
        backup: ProgressBackup,
        job_log: JobLog,
        effects: EffectRunner,
        log: FilteringBoundLogger,
    ) -> None:
        self._live = live
        self._backup = backup
        self._job_log = job_log
        self._effects = effects
        self._log = log
        effects.on(CollectReported, self._collect)

    def _collect(self, effect: CollectReported) -> None:
        placement = effect.placement
        part = placement.part
        pace = self._live.pace(part)  # before it is left out
        at_s, iterations, state = self.heard_of(placement)
        end = PartEnd(
            part=placement.part,
            fence=placement.fence,
            worker=placement.worker,
            outcome="cut off",
            iterations=iterations,
            state=state,
            lost=(effect.reason,),
        )
        result = part_end.encode_end(end) if state else b""
        if len(result) > self._job_log.room_bytes(part.job_id, str(part), effect.reason):
            result = b""
        heard = Heard(at_s, iterations, result, pace)
        self._effects.receive(ReportedCollected(placement, heard))

    def heard_of(self, placement: Placement) -> tuple[float, int, bytes]:
        """Load time, iterations and mergeable state."""
        part, fence = placement.part, placement.fence
        heard = self._live.close(part, fence)
        backup = self._backup.of(part, fence)
        if heard[2] or backup is None:
            return heard
        try:
            return backup.at_s, backup.iterations, spread(backup.state, placement.resume_at_s)
        except DamagedState as error:
            reason = error.message
            self._log.warning("backup of a part not readable", part=str(part), reason=reason)
            return heard
