"""Prefetch and spool."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.queue.reports import Completed, Failed
from hyperscale.scheduler.worker.reporter import Spool
from hyperscale.scheduler.worker.settings import new_worker_id, spool_of
from hyperscale.scheduler.worker.slots import CLAIM_MAX, Prefetch


def test_one_job_per_free_slot_unless_jobs_are_very_short() -> None:
    prefetch = Prefetch(4)
    assert [prefetch.wanted(held, 4) for held in range(6)] == [4, 3, 2, 1, 0, 0]
    for _ in range(100):
        prefetch.ran(0.001)
    assert prefetch.wanted(0, 4) > 100
    prefetch.ran(60.0)
    assert prefetch.wanted(4, 4) == 0
    assert prefetch.wanted(3, 4) == 1


def test_nothing_is_claimed_ahead_for_slots_at_slow_jobs() -> None:
    prefetch = Prefetch(4)
    for _ in range(100):
        prefetch.ran(0.001)
    assert prefetch.wanted(4, 4) > prefetch.wanted(4, 1) > 0
    assert prefetch.wanted(4, 0) == 0
    assert prefetch.wanted(3, 0) == 1


@given(st.integers(1, 100), st.lists(st.floats(0, 100), max_size=50), st.integers(0, 2000))
def test_never_more_than_a_batch_and_never_idle_with_a_free_slot(
    slots: int, runs: list[float], held: int
) -> None:
    prefetch = Prefetch(slots)
    for seconds in runs:
        prefetch.ran(seconds)
    for quick in (0, slots):
        wanted = prefetch.wanted(held, quick)
        assert 0 <= wanted <= CLAIM_MAX
        assert wanted > 0 or held >= slots


def test_spool_keeps_what_is_not_accepted(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    one = Completed(job_id="../../etc/x", worker="w-1", token=1, log="✓")
    two = Failed(job_id="b", worker="w-1", token=2, failure=Failure.ERROR, error="no")
    spool.keep(one)
    spool.keep(one)
    spool.keep(two)
    (tmp_path / "spool" / "torn-3.json").write_bytes(b'{"report":')
    again = Spool(tmp_path / "spool")
    assert sorted(again.left(), key=lambda report: report.token) == [one, two]
    again.forget(one)
    again.forget(one)
    assert again.left() == [two]
    assert [path.name for path in tmp_path.iterdir()] == ["spool"]
    assert not again.full


def test_a_store_has_one_spool_and_no_other_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "jobs.db"
    same = {spool_of(f"sqlite:{name}") for name in ("jobs.db", "./jobs.db", path, f"//{path}")}
    assert len(same) == 1
    assert spool_of("redis://anna:secret@shop/1") == spool_of("redis://shop/1")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    addresses = ("sqlite:jobs.db", "redis://shop/1", "redis://shop/2", "memory:")
    assert len(same | {spool_of(address) for address in addresses}) == 5


def test_worker_ids_are_dns_labels_and_differ() -> None:
    one, two = new_worker_id(), new_worker_id()
    assert one != two
    assert one.replace("-", "").isalnum()
