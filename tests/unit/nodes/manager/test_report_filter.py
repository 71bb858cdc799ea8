"""Which reports the jobs core hears of: those that say something new, and one now and then."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.nodes.manager.report_filter import (
    CORE_S,
    LISTED,
    REPORTS_MAX,
    REPORTS_S,
    WORKERS_MAX,
    ReportFilter,
)
from hyperscale.nodes.protocol.parts import ReportProgress
from tests.unit.nodes.manager.cases import delta, placement, progress

REPORT = ReportProgress(
    worker="w1", incarnation=1, free_cores=0, parts=(progress(placement(0), 1.0, delta(1, 10)),)
)


def test_a_report_of_nothing_but_numbers_is_routine() -> None:
    reports = ReportFilter()
    assert not reports.is_repeat(0.0, REPORT)
    later = progress(placement(0), 1.1, delta(2, 30))
    assert reports.is_repeat(0.1, msgspec.structs.replace(REPORT, parts=(later,), cpu_percent=90.0))


def test_the_core_hears_of_a_worker_once_a_second() -> None:
    reports = ReportFilter()
    heard = [at / 100 for at in range(0, 1_000, 10) if not reports.is_repeat(at / 100, REPORT)]
    assert len(heard) == 10.0 / CORE_S


@pytest.mark.parametrize(
    "news",
    [
        {"incarnation": 2},
        {"free_cores": 1},
        {"draining": True},
        {"parts": ()},
        {"parts": (progress(placement(0, attempt=2), 1.0),)},
        {"parts": (progress(placement(1), 1.0),)},
        {"parts": (msgspec.structs.replace(REPORT.parts[0], state="ending"),)},
        {"parts": (msgspec.structs.replace(REPORT.parts[0], cores_done=1),)},
    ],
)
def test_anything_else_is_heard_at_once(news: dict[str, object]) -> None:
    reports = ReportFilter()
    reports.is_repeat(0.0, REPORT)
    assert not reports.is_repeat(0.01, msgspec.structs.replace(REPORT, **news))


def test_workers_are_told_apart_and_forgotten() -> None:
    reports = ReportFilter()
    reports.is_repeat(0.0, REPORT)
    assert not reports.is_repeat(0.0, msgspec.structs.replace(REPORT, worker="w2"))
    reports.pass_next("w1")
    assert not reports.is_repeat(0.01, REPORT)
    reports.forget("w1")
    assert not reports.is_repeat(0.01, REPORT)
    reports.clear()
    assert len(reports) == 0


def test_a_worker_that_reports_without_end_is_told_to_wait() -> None:
    reports = ReportFilter()
    assert [reports.wait_s(0.0, REPORT) for _ in range(REPORTS_MAX)] == [0.0] * REPORTS_MAX
    assert reports.wait_s(2.0, REPORT) == REPORTS_S - 2.0
    reports.pass_next("w1")
    assert reports.wait_s(2.0, REPORT) == REPORTS_S - 2.0
    assert reports.wait_s(2.0, msgspec.structs.replace(REPORT, worker="w2")) == 0.0
    assert reports.wait_s(REPORTS_S, REPORT) == 0.0


def test_a_long_report_counts_for_several() -> None:
    reports = ReportFilter()
    long = msgspec.structs.replace(REPORT, parts=REPORT.parts * LISTED * 4)  # a delta in each
    taken = 0
    while not reports.wait_s(0.0, long):
        taken += 1
    assert taken == -(-REPORTS_MAX // 9)


def test_workers_without_number_do_not_fill_the_memory() -> None:
    reports = ReportFilter()
    for number in range(WORKERS_MAX + 10):
        reports.wait_s(0.0, msgspec.structs.replace(REPORT, worker=f"w{number}"))
    assert len(reports) <= WORKERS_MAX
