"""Many small jobs through a small pool: all end, each once, and nothing is left."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from hyperscale import Workflow, step
from hyperscale.client import HyperscaleClient
from hyperscale.errors import ExitCode
from hyperscale.testing import URL, HTTPResponse
from tests.integration.cluster.fleet import DEADLINE_S, Fleet
from tests.integration.cluster.witness import Witness

JOBS = 200 if os.environ.get("TESTS_SOAK") else 16
ITERATIONS = 5
# A generator process starts for each of them; on a machine that has other things to do, too.
JOB_S = 3.0


def test_many_small_jobs(tmp_path: Path) -> None:
    with Witness() as witness, Fleet(tmp_path, managers=3, workers=2, tls=True) as fleet:
        fleet.start()
        target = f"{witness.url}/"

        class Small(Workflow):
            vus = 1
            iterations = ITERATIONS

            @step()
            async def get(self, url: URL = target) -> HTTPResponse:
                return await self.client.http.get(url)

        async def carry_out() -> list[tuple[str, int | None, int]]:
            async with HyperscaleClient(fleet.addresses, certs=fleet.certs) as client:
                names = [await client.submit_job([Small]) for _ in range(JOBS)]
                assert len(set(names)) == JOBS
                ends = []
                for name in names:
                    end = await client.wait_for_completion(name, timeout=DEADLINE_S + JOBS * JOB_S)
                    counted = sum(step.count for one in end.results.workflows for step in one.steps)
                    ends.append((end.status, end.results.exit_code, counted))
                return ends

        ends = asyncio.run(carry_out())
        assert ends == [("completed", ExitCode.PASSED, ITERATIONS)] * JOBS
        assert witness.requests == JOBS * ITERATIONS
        fleet.wait_until_idle()
