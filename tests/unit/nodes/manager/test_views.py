"""What is told of a job that is over, by a leader that saw nothing of it run."""

from __future__ import annotations

from hyperscale.nodes.protocol.jobs import AskJobs
from hyperscale.nodes.protocol.parts import PartEnd
from tests.unit.nodes.manager.cases import state
from tests.unit.nodes.manager.lone_manager import LoneManager, play


def test_a_later_leader_tells_the_numbers_of_jobs_that_are_over() -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        told = state(7, 2, elapsed_s=60.0, offered=540.0)
        end = PartEnd(
            part=order.part, fence=order.fence, worker="w1", outcome="completed",
            measured_s=60.0, state=told,
        )  # fmt: skip
        assert await lone.tell(end)
        job = lone.manager.jobs.job("j1")
        assert job is not None
        await lone.until(lambda: job.is_over)
        lone.manager.live.clear()  # as whoever leads next begins

        call = lone.call("ask.jobs", "client", "c1")
        [view] = (await lone.client_api.jobs(call, AskJobs())).jobs
        [workflow] = view.workflows
        assert (workflow.requests, workflow.failed, workflow.elapsed_s) == (7, 2, 60.0)
        assert (view.exit_code, view.coverage) == (98, 0.9)
        assert view.lost == ("Shop: 60 of 600 planned seconds of users were not offered",)

    play(story)
