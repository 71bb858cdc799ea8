"""What does not fit into a record: the job ends all the same, and says what is missing."""

from __future__ import annotations

import pytest

from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.nodes.protocol.parts import PartEnd
from tests.unit.nodes.manager.cases import state
from tests.unit.nodes.manager.lone_manager import LoneManager, play


@pytest.mark.parametrize("record_bytes_max", [1_500, 700])
def test_a_result_that_is_too_large_to_be_kept_does_not_keep_its_job_from_ending(
    record_bytes_max: int,
) -> None:
    """1,500 bytes hold the end of the part and not the result of the job, 700 neither."""

    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        end = PartEnd(
            part=order.part, fence=order.fence, worker="w1", outcome="completed",
            measured_s=60.0, iterations=10, state=state(10), warnings=("w" * 500,),
        )  # fmt: skip
        told = lone.manager.host.tasks.spawn("tell", lone.tell(end))
        job = lone.manager.jobs.job("j1")
        assert job is not None
        await lone.until(lambda: job.is_over, within_s=200.0)
        assert told.done()
        assert not lone.manager.jobs.replicated.by_worker, "its cores are free"

    play(story, records=RecordsSettings(record_bytes_max=record_bytes_max))
