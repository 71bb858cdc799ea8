from __future__ import annotations

import itertools

import msgspec
import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.load import (
    ArrivalRate,
    ClosedVUs,
    Load,
    PerVUIterations,
    RampingRate,
    RampingVUs,
    SharedIterations,
    Stage,
    split,
    split_vus,
)

RAMP = (Stage(10, 100), Stage(20, 100), Stage(5, 0))


@pytest.mark.parametrize(
    ("load", "words", "seconds", "iterations", "peak", "is_open"),
    [
        (ClosedVUs(10, 30), "10 VUs for 30s", 30, None, 10, False),
        (ClosedVUs(1, 90), "1 VU for 1m30s", 90, None, 1, False),
        (RampingVUs(RAMP), "0 → 100 → 100 → 0 VUs over 35s", 35, None, 100, False),
        (ArrivalRate(500, 60, 200), "500/s for 1m, up to 200 VUs", 60, None, 200, True),
        (
            RampingRate(RAMP, 400, start=10),
            "10 → 100 → 100 → 0/s over 35s, up to 400 VUs",
            35,
            None,
            400,
            True,
        ),
        (
            SharedIterations(4, 1000),
            "1,000 iterations by 4 VUs, at most 10m",
            None,
            1000,
            4,
            False,
        ),
        (
            PerVUIterations(4, 10),
            "10 iterations by each of 4 VUs, at most 10m",
            None,
            40,
            4,
            False,
        ),
    ],
)
def test_a_load_describes_itself_and_travels(
    load: Load, words: str, seconds: float | None, iterations: int | None, peak: int, is_open: bool
) -> None:
    assert load.describe() == words
    assert load.planned_seconds == seconds
    assert load.planned_iterations == iterations
    assert load.peak_vus == peak
    assert load.open_model is is_open
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(load), type=Load) == load


def test_a_long_ramp_is_told_by_its_ends_and_its_peak() -> None:
    stages = tuple(Stage(1, target) for target in (5, 50, 20, 80, 10, 1))
    assert RampingVUs(stages).describe() == "0 → 80 → 1 VUs over 6s"


def test_virtual_users_follow_straight_lines_and_jumps() -> None:
    ramp = RampingVUs((Stage(10, 100), Stage(0, 20), Stage(10, 20)))
    assert [ramp.vus_at(second) for second in (0, 5, 9.99, 10, 15, 20, 99)] == [
        *(0, 50, 100, 20, 20, 20, 20)
    ]


def test_arrivals_are_evenly_spaced() -> None:
    assert list(ArrivalRate(4, 1, 10).arrivals()) == [0, 0.25, 0.5, 0.75]


def test_arrivals_follow_a_ramp() -> None:
    rising = list(RampingRate((Stage(10, 10),), 10).arrivals())
    assert len(rising) == 50
    # The area under a rate of t per second reaches n at sqrt(2n).
    assert rising == pytest.approx([(2 * number) ** 0.5 for number in range(50)])


@pytest.mark.parametrize(
    ("vus", "cores", "shares"),
    [
        (2000, 6, [333, 333, 333, 333, 333, 335]),
        (333, 2, [166, 167]),
        (10000, 4, [2500] * 4),
        (47, 24, [1] * 23 + [24]),
        (5, 1, [5]),
    ],
)
def test_users_are_split_with_the_remainder_on_the_last_core(
    vus: int, cores: int, shares: list[int]
) -> None:
    assert split_vus(vus, cores) == shares
    assert [share.peak_vus for share in split(ClosedVUs(vus, 1), cores)] == shares


def test_no_core_is_left_without_a_user() -> None:
    assert split(ClosedVUs(3, 1), 8) == [ClosedVUs(1, 1)] * 3
    assert len(split(SharedIterations(10, 2), 8)) == 2


def test_what_every_load_has_stays_with_every_share() -> None:
    load = ClosedVUs(4, 10, warmup_s=2, think_time_s=(1, 2), graceful_stop_s=0, pacing_s=3)
    shares = split(load, 2)
    assert shares == [msgspec.structs.replace(load, vus=2)] * 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ClosedVUs(0, 10), "vus is 0 but must be at least 1"),
        (lambda: ClosedVUs(1, 0), "duration is 0 but must be above 0"),
        (lambda: RampingVUs(()), "stages is empty"),
        (lambda: RampingVUs((Stage(0, 5),)), "the stages take no time"),
        (lambda: RampingVUs((Stage(5, 0),)), "the stages never reach one VU"),
        (lambda: RampingVUs((Stage(5, 1.5),)), "a part of a VU"),
        (lambda: RampingVUs((Stage(5, 1),), warmup_s=1), "warmup runs at the level"),
        (lambda: RampingRate((Stage(5, 0),), 1), "never start an iteration"),
        (lambda: RampingRate((Stage(5, 1),), 1, warmup_s=1), "warmup runs at the rate"),
        (lambda: ArrivalRate(0, 5, 1), "rate is 0 but must be above 0"),
        (lambda: ArrivalRate(1, 5, 1, vus=2), "vus is 2 but max_vus only allows 1"),
        (lambda: SharedIterations(1, 0), "iterations is 0 but must be at least 1"),
        (lambda: PerVUIterations(1, 0), "iterations_per_vu is 0 but must be at least 1"),
    ],
)
def test_a_load_that_makes_no_sense_is_refused(make: object, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        make()  # type: ignore[operator]


def test_no_core_begins_with_more_users_than_it_may_have() -> None:
    for most, ready, cores in itertools.product(range(1, 14), range(14), range(1, 9)):
        if ready > most:
            continue
        shares = split(ArrivalRate(rate=50, duration_s=20, vus=ready, max_vus=most), cores)
        each = [(one.vus, one.max_vus) for one in shares if isinstance(one, ArrivalRate)]
        assert all(vus <= cap for vus, cap in each), (most, ready, cores, each)
        assert [sum(amounts) for amounts in zip(*each, strict=True)] == [ready, most]
