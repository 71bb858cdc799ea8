"""One result and one verdict from the ends of all parts of a job."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.fold import apply
from hyperscale.cluster.jobs.records import Dispatched, PartEnded, PartLost, Placement, Started
from hyperscale.cluster.jobs.state import Book
from hyperscale.errors import ExitCode
from hyperscale.metrics.results import Environment, Results
from hyperscale.nodes.manager import conclusion, orders
from hyperscale.nodes.manager.desk import submitted
from hyperscale.nodes.protocol.jobs import Body, SubmitJob
from tests.unit.nodes.manager.cases import FACTS, JOB, end, placement

BODY = Body(workflows=(FACTS,), source=b"code", overrides=b"")
DIED = "generator process 7 of Shop was killed by SIGKILL"


def dispatched(*placements: Placement, replaces: bool = False) -> Dispatched:
    return Dispatched(JOB, 0.1, "Shop", 4, placements, replaces=replaces)


def ended(where: Placement, measured_s: float, *lost: str) -> PartEnded:
    result = orders.encode_end(end(where, 10, measured_s=measured_s, lost=lost))
    return PartEnded(
        JOB, 1.0, where.part, where.fence, where.worker, "completed", measured_s, result
    )


@pytest.fixture
def book() -> Book:
    made = Book()
    apply(made, submitted(SubmitJob(job_id=JOB, body=msgspec.msgpack.encode(BODY))))
    return made


def conclude(book: Book, coverage: float = 1.0) -> Results:
    return conclusion.conclude(
        BODY, book.jobs[JOB], "completed", elapsed_s=60.0, coverage=coverage, lost=(),
        judges=(), environment=Environment(),
    )  # fmt: skip


def test_a_part_without_its_processes_delivers_nothing_while_others_go_on(book: Book) -> None:
    first, second = placement(0), placement(1)
    apply(book, dispatched(first, second))
    apply(book, ended(first, 15.0, DIED))
    apply(book, ended(second, 60.2))
    results = conclude(book)
    assert results.exit_code == ExitCode.LOAD_LOST
    assert results.lost == [DIED]
    assert results.coverage == pytest.approx((15 + 60) / 120)


def test_a_part_that_moved_before_is_measured_from_there(book: Book) -> None:
    first, second = placement(0), placement(1)
    again = msgspec.structs.replace(first, worker="w9", fence=Fence(1, 2, 2), resume_at_s=20.0)
    apply(book, dispatched(first, second))
    apply(book, Started(JOB, 0.2, "Shop", b""))
    apply(book, PartLost(JOB, 1.0, first.part, first.fence, "w0", 18.0, 5, b"", "died"))
    apply(book, dispatched(again, replaces=True))
    apply(book, ended(again, 10.0, DIED))
    apply(book, ended(second, 60.0))
    assert conclude(book, coverage=0.98).coverage == pytest.approx((30 + 60) / 120)
