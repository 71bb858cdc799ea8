"""A test on a cluster from a Python program: progress as it happens, a verdict at the end.

hyperscale dev &
python examples/cluster/nightly.py
"""

import asyncio
import os
import sys

from hyperscale import Workflow, step
from hyperscale.client import HyperscaleClient, JobStatusPush, WindowedStatsPush
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")


class Items(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["p(95)<500", "http_req_failed: rate<0.01"]

    @step()
    async def listing(self, url: URL = f"{TARGET}/items") -> HTTPResponse:
        return await self.client.http.get(url)


def on_status(push: JobStatusPush) -> None:
    print(f"{push.status} {push.message}".rstrip())


async def on_progress(push: WindowedStatsPush) -> None:
    print(f"{push.window_end:5.1f}s  {push.rate_per_second:,.0f}/s  {push.total_completed:,} done")


async def main() -> bool:
    # Without an address: the `hyperscale dev` cluster of this machine.
    async with HyperscaleClient() as client:
        job_id = await client.submit_job(
            [Items], environ={"TARGET": TARGET}, on_status_update=on_status,
            on_progress_update=on_progress,
        )  # fmt: skip
        outcome = await client.wait_for_completion(job_id)
    return outcome.results is not None and outcome.results.passed


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
