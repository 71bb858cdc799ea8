"""First come, first served, and the big are not starved."""

from __future__ import annotations

from hyperscale.cluster.jobs.queue import Queue
from hyperscale.cluster.jobs.settings import JobSettings


def test_positions_follow_arrival() -> None:
    queue = Queue(JobSettings())
    queue.want(5.0, "b", arrival=2, fresh=True)
    queue.want(9.0, "a", arrival=1, fresh=True)
    queue.want(9.0, "c", arrival=3, fresh=True)
    assert queue.order() == ["a", "b", "c"]
    assert [queue.position(job) for job in "abc"] == [1, 2, 3]
    queue.leave(10.0, "a")
    assert [queue.position(job) for job in "abc"] == [0, 1, 2]


def test_a_running_job_waits_in_order_but_has_no_position() -> None:
    queue = Queue(JobSettings())
    queue.want(0.0, "running", arrival=1, fresh=False)
    queue.want(0.0, "new", arrival=2, fresh=True)
    assert queue.order() == ["running", "new"]
    assert queue.position("running") == 0
    assert queue.position("new") == 1


def test_it_is_bounded() -> None:
    queue = Queue(JobSettings(queue_jobs_max=2))
    queue.want(0.0, "a", 1, fresh=True)
    assert not queue.is_full()
    assert queue.is_full(under_way=1)
    queue.want(0.0, "b", 2, fresh=True)
    assert queue.is_full()
    queue.want(0.0, "b", 2, fresh=False)
    assert not queue.is_full()


def test_reservation_comes_with_age() -> None:
    queue = Queue(JobSettings(reserve_after_s=30.0))
    queue.want(10.0, "big", 1, fresh=True)
    queue.want(20.0, "big", 1, fresh=True)  # wanting again does not make it younger or older
    assert not queue.reserves(39.9, "big")
    assert queue.reserves(40.0, "big")
    assert not queue.reserves(40.0, "unknown")


def test_retry_after_follows_how_fast_jobs_leave() -> None:
    queue = Queue(JobSettings(retry_after_min_s=1.0, retry_after_max_s=60.0))
    assert queue.retry_after_s() == 1.0
    for n in range(10):
        queue.want(n * 20.0, f"j{n}", n, fresh=True)
        queue.leave(n * 20.0, f"j{n}")
    assert queue.retry_after_s() == 20.0
