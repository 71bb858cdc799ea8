"""The Python client against a real scheduler: roles, repeats, pages, both flavours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.http.client import (
    AsyncSchedulerClient,
    Refused,
    SchedulerClient,
    Unreachable,
)
from tests.integration.scheduler.scheduler_process import SchedulerProcess, scheduler_process

ADMIN = "a-token-for-the-administrator"
VIEWER = "a-token-for-the-viewer"
WORK = {"kind": "http", "payload": {"url": "http://127.0.0.1:1/"}}


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    directory = tmp_path_factory.mktemp("client")
    (directory / "tokens").write_text(f"ada admin {ADMIN}\nvera viewer {VIEWER}\n")
    (directory / "tokens").chmod(0o600)
    with scheduler_process(
        directory, "--no-worker", "--tokens", str(directory / "tokens")
    ) as running:
        yield running


def test_a_viewer_looks_and_an_admin_acts(scheduler: SchedulerProcess) -> None:
    with scheduler.client(VIEWER) as viewer, scheduler.client(ADMIN) as admin:
        job = admin.submit_job(name="probe", **WORK)
        assert viewer.job(job["job_id"])["state"] == "PENDING"
        with pytest.raises(Refused) as refused:
            viewer.cancel_job(job["job_id"])
        assert refused.value.status == 403
        assert admin.cancel_job(job["job_id"])["state"] == "CANCELLED"
        assert admin.verify_audit()["good"] is True
    with (
        scheduler.client("a-token-of-nobody") as guest,
        pytest.raises(Refused, match="nobody here"),
    ):
        guest.overview()
    with scheduler.client() as stranger, pytest.raises(Refused, match="needs a token"):
        stranger.jobs()


def test_lists_go_over_pages(scheduler: SchedulerProcess) -> None:
    with scheduler.client(ADMIN) as client:
        for number in range(5):
            client.create_schedule(id=f"s-{number}", cron="@yearly", job=WORK)
        assert [one["id"] for one in client.schedules()] == [f"s-{n}" for n in range(5)]
        assert len(client.schedules(limit=3)) == 3
        assert len(client.preview_schedule("s-0", 4)) == 4


def test_the_same_from_coroutines(scheduler: SchedulerProcess) -> None:
    async def work() -> None:
        async with AsyncSchedulerClient(scheduler.url, ADMIN) as client:
            made = await asyncio.gather(
                *(client.submit_job(name=f"job-{n}", **WORK) for n in range(10))
            )
            assert len({one["job_id"] for one in made}) == 10

    asyncio.run(work())


def test_nobody_there_and_nonsense() -> None:
    with SchedulerClient("http://127.0.0.1:1") as client, pytest.raises(Unreachable):
        client.overview()
    with pytest.raises(BadInput):
        SchedulerClient("ftp://somewhere")
