"""Where a manager's settings come from, and what is said about those that cannot be used."""

from __future__ import annotations

import pytest

from hyperscale.config.sections import Reading, Sources
from hyperscale.errors import BadInput
from hyperscale.nodes.manager.settings import SECTIONS, ManagerSettings, manager_settings


def read(
    *assigned: str, environ: dict[str, str] | None = None, **tables: dict[str, object]
) -> ManagerSettings:
    flags: dict[str, object] = {"id": "m1", "cluster": "shop", "env": "prod", "plaintext": True}
    flags |= {"voters": "m1", "set": list(assigned)}
    return manager_settings(Reading(Sources(flags, environ or {}, tables), SECTIONS))


def test_every_section_has_a_table_variables_and_assignments() -> None:
    made = read(
        "jobs.queue_jobs_max=5",
        "records.ping_s=0.5",
        environ={"HYPERSCALE_JOBS_QUEUE_JOBS_MAX": "7", "HYPERSCALE_MANAGER_WINDOW_S": "0.2"},
        jobs={"queue-jobs-max": 9, "completed_kept_s": 60},
        manager={"window_s": 0.5, "progress_per_s_max": 100},
        records={"retry_s": 1},
    )

    assert (made.jobs.queue_jobs_max, made.jobs.completed_kept_s) == (5, 60.0)
    assert (made.window_s, made.progress_per_s_max) == (0.2, 100)
    assert (made.records.ping_s, made.records.retry_s) == (0.5, 1.0)
    assert (made.node.role, made.node.voters) == ("manager", ("m1",))


@pytest.mark.parametrize(
    ("assigned", "sentence"),
    [
        ("jobs.retries_max=-1", "--set jobs.retries_max takes nothing below zero"),
        ("jobs.orphan_scan_s=0", "orphan_scan_s must be above zero, not 0"),
        ("jobs.stuck_s=5", "stalled_s must be below stuck_s (--set jobs.stuck_s is 5.0)"),
        ("manager.window_s=0", "window_s must be above zero (--set manager.window_s is 0.0)"),
        ("records.pipeline_max=0", "the records settings cannot be used (--set records.pipeline"),
        ("jobs.reschedule_s=5", "jobs.reschedule_s is 5 (--set jobs.reschedule_s), but a worker"),
        (
            "jobs.key_kept_s=60",
            "jobs.key_kept_s is 60 (--set jobs.key_kept_s), but a client repeats",
        ),
        ("worker.cores=5", "--set worker has no setting 'cores'"),
    ],
)
def test_what_cannot_be_used_is_named(assigned: str, sentence: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read(assigned)
    assert sentence in refusal.value.message


def test_faster_workers_let_a_manager_move_work_sooner() -> None:
    made = read("jobs.reschedule_s=5", worker={"fence_s": 3, "cores": 8})
    assert made.jobs.reschedule_s == 5.0


def test_a_manager_without_voters_is_told_so() -> None:
    given = {"id": "m1", "cluster": "shop", "env": "prod", "plaintext": True}
    with pytest.raises(BadInput, match="m1 has no voters"):
        manager_settings(Reading(Sources(given), SECTIONS))
