"""Five grants, one warning, ten seconds of grace."""

from __future__ import annotations

from hyperscale.cluster.jobs.extensions import Extensions
from hyperscale.cluster.jobs.settings import JobSettings


def test_the_sequence() -> None:
    extensions = Extensions(JobSettings())
    grants = [extensions.ask(float(n), 0.1 * (n + 1)) for n in range(5)]
    assert [grant.seconds for grant in grants] == [15, 7.5, 3.75, 1.875, 1.0]
    assert [grant.remaining for grant in grants] == [4, 3, 2, 1, 0]
    assert [grant.warning for grant in grants] == [False, False, False, True, False]
    assert extensions.total_s == 29.125
    sixth = extensions.ask(5.0, 0.9)
    assert not sixth.granted
    assert sixth.denial.startswith("max_extensions_exceeded")


def test_exhaustion_and_grace() -> None:
    extensions = Extensions(JobSettings())
    for n in range(5):
        extensions.ask(0.0, 0.1 * (n + 1))
    assert extensions.exhausted_at() == 29.125  # the last grant runs out, unless it asks again
    assert extensions.excuses(29.0)
    denied = extensions.ask(2.0, 0.9)
    assert denied.grace_s == 10.0
    assert extensions.evict_at() == 12.0
    assert extensions.grace_remaining_s(7.0) == 5.0
    assert extensions.grace_remaining_s(99.0) == 0.0


def test_no_progress_is_denied_with_both_figures() -> None:
    extensions = Extensions(JobSettings())
    assert extensions.ask(0.0, 0.0).granted  # the first needs none
    denied = extensions.ask(1.0, 0.0)
    assert denied.denial == "no_progress: 0.000 is not above 0.000"
    assert extensions.ask(2.0, 0.1).granted
    assert extensions.evict_at() is None


def test_a_suspect_gets_nothing() -> None:
    assert Extensions(JobSettings()).ask(0.0, 0.5, suspect=True).denial.startswith("suspect")


def test_recovery_begins_anew() -> None:
    extensions = Extensions(JobSettings())
    for n in range(6):
        extensions.ask(0.0, 0.1 * (n + 1))
    extensions.reset()
    assert extensions.evict_at() is None
    assert extensions.ask(50.0, 0.0).seconds == 15
