"""Jobs and workers as lines for people."""

from __future__ import annotations

from hyperscale.cli.jobs import job_lines, log_lines, status_lines
from hyperscale.cli.tables import age, table
from hyperscale.cli.workers import worker_lines
from hyperscale.nodes.protocol.jobs import (
    JobView,
    JobViews,
    WorkerView,
    WorkerViews,
    WorkflowView,
)
from hyperscale.ui.output import Paint

PLAIN, COLOURED = Paint(False), Paint(True)
SHOP = WorkflowView(
    name="Shop",
    state="running",
    lifecycle="RUNNING",
    cores=12,
    workers=("w1", "w2"),
    attempts=2,
    elapsed_s=41.4,
    planned_s=60.0,
    requests=12_345,
    failed=6,
    history=("0.0 PENDING → RUNNING", "5.0 RUNNING → FAILED (worker w2 died)"),
)
SEED = WorkflowView(name="Seed", state="failed", lifecycle="FAILED", error="no such table")
JOB = JobView(
    job_id="3f2a",
    name="evening",
    status="running",
    age_s=130,
    workflows=(SHOP, SEED),
    lost=("worker w7 lost at 41 s",),
    coverage=0.973,
    requested_by="ann@build",
)


def test_jobs() -> None:
    waiting = JobView(job_id="9", name="later", status="queued", age_s=5, position=3)
    assert job_lines(JobViews(jobs=(JOB, waiting)), PLAIN) == [
        "JOB   STATUS      AGE  REQUESTS  FAILED  NAME     BY",
        "3f2a  running      2m    12,345       6  evening  ann@build",
        "9     queued (3)   5s         0       0  later",
    ]
    assert job_lines(JobViews(), PLAIN) == ["no jobs"]


def test_a_paused_job_says_so() -> None:
    paused = JobView(job_id="9", name="x", status="running", paused=True)
    assert "paused" in job_lines(JobViews(jobs=(paused,)), PLAIN)[1]


def test_status_tells_of_losses_and_errors() -> None:
    assert status_lines(JOB, PLAIN) == [
        "job 3f2a  evening  running",
        "2m old, submitted by ann@build",
        "97.3% of planned load",
        "worker w7 lost at 41 s",
        "",
        "WORKFLOW  STATE    CORES        TIME  REQUESTS  FAILED  TRIES  WORKERS",
        "Shop      running     12  41s of 60s    12,345       6      2  w1 w2",
        "Seed      failed       -          0s         0       0      0  -",
        "  no such table",
    ]
    assert "\x1b[31m  no such table\x1b[0m" in status_lines(JOB, COLOURED)


def test_logs() -> None:
    assert log_lines(JOB, PLAIN) == [
        "job 3f2a  running",
        "",
        "Shop",
        "  0.0 PENDING → RUNNING",
        "  5.0 RUNNING → FAILED (worker w2 died)",
        "",
        "Seed",
        "  nothing yet",
    ]


def test_workers() -> None:
    busy = WorkerView(
        worker="w1",
        address="10.0.0.9:7000",
        state="healthy",
        total_cores=8,
        free_cores=0,
        parts=("3f2a/Shop/0",),
        requests=9_000,
        rate=1_234.5,
        cpu_percent=97.0,
        memory_percent=12.0,
    )
    silent = WorkerView(
        worker="w2", address="", state="dead", total_cores=4, free_cores=0, heard_s=42.4
    )
    answer = WorkerViews(workers=(busy, silent), leader="m2", total_cores=8)
    assert worker_lines(answer, PLAIN) == [
        "2 workers, 0 of 8 cores free, leader m2",
        "",
        "WORKER  STATE      HEARD  CORES  FREE  CPU  MEM  REQ/S  REQUESTS  ADDRESS",
        "w1      healthy      now      8     0  97%  12%  1,234     9,000  10.0.0.9:7000",
        "  3f2a/Shop/0",
        "w2      dead     42s ago      4     0   0%   0%      -         -",
    ]
    assert worker_lines(WorkerViews(), PLAIN) == ["0 workers, 0 of 0 cores free, no leader"]


def test_columns_are_as_wide_as_they_must_be() -> None:
    assert table(("A", "BB"), [("long", "1")], {"BB"}) == ["A     BB", "long   1"]


def test_ages() -> None:
    assert [age(s) for s in (0.4, 119, 120, 7_200, 200_000)] == ["0s", "119s", "2m", "2h", "2d"]
