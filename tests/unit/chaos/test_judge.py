"""The judge of rounds on real nodes: it lets the truth pass, and sees every lie told here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from tests.chaos.judge import Evidence, Harm, Report, by_worker, judge, share_served
from tests.chaos.loads import Job, Load
from tests.chaos.target import Hit

RATE, USERS, SECONDS = 50, 6, 10
OPEN = Load("Load", "arrivals", RATE, SECONDS)
CLOSED = Load("Load", "users", USERS, SECONDS)
ITERATIONS = Load("Load", "iterations", USERS * SECONDS * 10, SECONDS, USERS)
LOADS = pytest.mark.parametrize("load", [OPEN, CLOSED, ITERATIONS], ids=lambda load: load.model)


def arrivals(rate: int = RATE, seconds: int = SECONDS) -> list[Hit]:
    """Every other one on each of two workers."""
    return [
        Hit(number / rate, f"w{number % 2 + 1}", "Load", number % 2)
        for number in range(rate * seconds)
    ]


def users(count: int = USERS, seconds: float = SECONDS, begin_s: float = 0.0) -> list[Hit]:
    return [
        Hit(begin_s + step / 10, f"w{user % 2 + 1}", "Load", user)
        for step in range(int(seconds * 10))
        for user in range(count)
    ]


def served(load: Load) -> list[Hit]:
    return arrivals() if load is OPEN else users()


def evidence(load: Load, hits: Sequence[Hit] | None = None, **report: Any) -> Evidence:
    """What happened, and a report that tells it as it was."""
    happened = served(load) if hits is None else hits
    true = Report(exit_code=0, told_s=SECONDS + 1.0, counts=by_worker(happened))
    return Evidence(Job((load,)), happened, replace(true, **report))


def rules(what: Evidence) -> set[str]:
    return {finding.rule for finding in judge(what)}


def without(hits: Sequence[Hit], worker: str, from_s: float) -> list[Hit]:
    return [hit for hit in hits if hit.worker != worker or hit.at_s < from_s]


# -- the truth -------------------------------------------------------------------------------


@LOADS
def test_all_served_and_told(load: Load) -> None:
    assert judge(evidence(load)) == []


@LOADS
def test_lost_and_told(load: Load) -> None:
    hits = without(served(load), "w2", 5.0)
    what = evidence(load, hits, exit_code=98, coverage=0.75, lost=("w2 lost at 5 s",))
    assert judge(replace(what, harms=[Harm("w2", "killed", 5.0, 8.0)])) == []


def test_a_killed_worker_did_more_than_it_told() -> None:
    hits = without(arrivals(), "w2", 5.0)
    counts = by_worker(hits)
    counts["Load", "w2"] -= 10
    what = evidence(OPEN, hits, exit_code=98, coverage=0.735, counts=counts)
    assert judge(replace(what, harms=[Harm("w2", "killed", 5.0, 8.0)])) == []


def test_iterations_that_a_killed_worker_could_not_tell_are_not_done_again() -> None:
    hits = users()
    again = [Hit(SECONDS + n / 100, "w1", "Load", 0) for n in range(8)]
    what = evidence(ITERATIONS, hits + again, counts={("Load", "w1"): 308, ("Load", "w2"): 292})
    hurt = replace(what, harms=[Harm("w2", "killed", 9.9, 12.0)])
    assert rules(hurt) == {"too much"}
    assert rules(what) == {"too much", "counts"}


def test_iterations_that_were_interrupted_are_done_again() -> None:
    hits = [*users(), Hit(10.0, "w1", "Load", 0)]
    assert judge(evidence(ITERATIONS, hits, interrupted={"Load": 1})) == []
    assert rules(evidence(ITERATIONS, hits)) == {"too much"}


def test_arrivals_may_be_late() -> None:
    hits = [hit if not 3 < hit.at_s < 5 else replace(hit, at_s=5.0) for hit in arrivals()]
    assert judge(evidence(OPEN, hits)) == []


def test_cancelled() -> None:
    job = Job((replace(CLOSED, duration_s=40),), cancel_at_s=9.0)
    what = replace(evidence(CLOSED, exit_code=105, told_s=9.95), job=job)
    assert judge(what) == []
    assert rules(replace(what, report=replace(what.report, exit_code=1))) == {"exit code"}


def test_without_a_majority_a_job_may_fail() -> None:
    what = evidence(OPEN, arrivals(seconds=3), exit_code=1, has_results=False)
    assert rules(what) == {"exit code"}
    assert judge(replace(what, majority_and_worker_live=False)) == []


# -- lies ------------------------------------------------------------------------------------


@LOADS
def test_passed_with_load_missing(load: Load) -> None:
    what = evidence(load, without(served(load), "w2", 9.5))
    assert "passed" in rules(what)


@LOADS
@pytest.mark.parametrize("coverage", [0.71, 0.79, 0.999])
def test_wrong_coverage(load: Load, coverage: float) -> None:
    hits = without(served(load), "w2", 5.0)
    what = evidence(load, hits, exit_code=98, coverage=coverage)
    assert rules(replace(what, harms=[Harm("w2", "killed", 5.0, 8.0)])) == {"coverage"}


def test_passed_and_lost_contradict() -> None:
    assert rules(evidence(OPEN, lost=("something",))) == {"coverage"}


@LOADS
def test_failed(load: Load) -> None:
    assert rules(evidence(load, exit_code=int(ExitCode.FAILED))) == {"exit code"}


def test_an_end_without_results() -> None:
    assert rules(evidence(OPEN, exit_code=98, has_results=False)) == {"exit code"}


def test_no_end() -> None:
    assert rules(evidence(OPEN, exit_code=None)) == {"no end"}


@LOADS
def test_served_after_the_end(load: Load) -> None:
    assert rules(evidence(load, told_s=9.5)) == {"after the end"}


def test_served_long_after_a_cancel() -> None:
    job = Job((replace(CLOSED, duration_s=40),), cancel_at_s=5.0)
    what = replace(evidence(CLOSED, exit_code=105, told_s=5.5), job=job)
    assert rules(what) == {"after the end"}


def test_more_arrivals_than_planned() -> None:
    hits = [*arrivals(), Hit(10.0, "w1", "Load", 0)]
    assert rules(evidence(OPEN, hits)) == {"too much"}


def test_arrivals_before_their_time() -> None:
    hits = sorted(arrivals(rate=RATE * 2, seconds=SECONDS // 2), key=lambda hit: hit.at_s)
    assert rules(evidence(OPEN, hits)) == {"too much"}


def test_more_users_than_planned() -> None:
    assert rules(evidence(CLOSED, users(USERS + 1))) == {"too much"}


def test_the_same_user_on_two_workers() -> None:
    moved = [replace(hit, worker="w1") for hit in users(2, 3, begin_s=5.0) if hit.worker == "w2"]
    hits = without(users(2), "w2", 6.0) + moved
    load = replace(CLOSED, amount=4)
    assert "doubled" in rules(evidence(load, hits, exit_code=98, coverage=0.4))


@LOADS
@pytest.mark.parametrize("error", [-1, 1])
def test_counts_of_a_worker_that_lived(load: Load, error: int) -> None:
    counts = by_worker(served(load))
    counts["Load", "w1"] += error
    assert "counts" in rules(evidence(load, counts=counts))


def test_counts_swapped_between_workers() -> None:
    counts = by_worker(arrivals())
    counts["Load", "w1"], counts["Load", "w2"] = (
        counts["Load", "w1"] + 5,
        counts["Load", "w2"] - 5,
    )
    assert rules(evidence(OPEN, counts=counts)) == {"counts"}


def test_what_a_killed_worker_told_long_before_is_missing() -> None:
    hits = without(arrivals(), "w2", 5.0)
    what = evidence(OPEN, hits, exit_code=98, coverage=0.6, counts={("Load", "w1"): 250})
    assert rules(replace(what, harms=[Harm("w2", "killed", 5.0, 8.0)])) == {"counts"}
    both = [Harm("w2", "killed", 5.0, 8.0), Harm("m1", "killed", 5.0, 8.0)]
    assert judge(replace(what, harms=both)) == []


def test_a_worker_that_came_back_tells_all() -> None:
    hits = without(arrivals(), "w2", 3.0)
    counts = by_worker(hits)
    counts["Load", "w2"] -= 40
    what = evidence(OPEN, hits, exit_code=98, coverage=0.6, counts=counts)
    assert rules(replace(what, harms=[Harm("w2", "cut", 2.0, 4.0)])) == {"counts"}
    assert judge(replace(what, harms=[Harm("w2", "cut", 1.0, 10.0)])) == []


@pytest.mark.parametrize("load", [OPEN, CLOSED], ids=lambda load: load.model)
def test_load_of_a_lost_worker_that_nobody_takes_over(load: Load) -> None:
    longer = replace(load, duration_s=20)
    all_of_it = arrivals(seconds=20) if load is OPEN else users(seconds=20)
    hits = without(all_of_it, "w2", 3.0)
    what = evidence(longer, hits, exit_code=98, coverage=0.575, told_s=21.0)
    assert rules(replace(what, harms=[Harm("w2", "killed", 3.0, 25.0)])) == {"not taken over"}
    assert judge(replace(what, harms=[Harm("w2", "generators", 3.0, 3.0)])) == []
    busy = replace(what, harms=[Harm("w2", "killed", 3.0, 25.0)], cpu_used=0.9)
    assert judge(busy) == []
    leaderless = [Harm("w2", "killed", 3.0, 25.0), Harm("m1", "stopped", 3.0, 9.0)]
    assert judge(replace(what, harms=leaderless)) == []


def test_requests_that_failed() -> None:
    assert rules(evidence(OPEN, failed=1)) == {"counts"}


def test_what_is_left_over() -> None:
    assert rules(replace(evidence(OPEN), left_over=["m1 ended"])) == {"left over"}


# -- measures --------------------------------------------------------------------------------


def test_user_seconds_leave_out_the_time_in_which_a_user_was_away() -> None:
    hits = users(1, 3) + users(1, 4, begin_s=6.0)
    load = replace(CLOSED, amount=1)
    assert share_served(load, hits) == pytest.approx(0.7)
