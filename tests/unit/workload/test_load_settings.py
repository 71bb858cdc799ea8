from __future__ import annotations

from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.load import (
    ArrivalRate,
    ClosedVUs,
    Load,
    PerVUIterations,
    RampingRate,
    RampingVUs,
    ShapedVUs,
    SharedIterations,
    Stage,
)
from hyperscale.workload.load_settings import load_of, override, parse_rate

SHAPE = object()  # that there is one is all that counts here


@pytest.mark.parametrize(
    ("settings", "load"),
    [
        ({}, ClosedVUs(10, 30)),
        ({"vus": 5, "duration": "1m"}, ClosedVUs(5, 60)),
        ({"rate": "500/s", "duration": "1m"}, ArrivalRate(500, 60, 5000)),
        ({"rate": 2}, ArrivalRate(2, 30, 100)),
        ({"rate": 2, "vus": 300}, ArrivalRate(2, 30, 300, vus=300)),
        ({"rate": 2, "vus": 3, "max_vus": 9}, ArrivalRate(2, 30, 9, vus=3)),
        ({"stages": [("30s", 100)]}, RampingVUs((Stage(30, 100),))),
        ({"stages": [("30s", 100)], "vus": 7}, RampingVUs((Stage(30, 100),), 7)),
        (
            {"stages": [("10s", "600/m")], "rate": 5},
            RampingRate((Stage(10, 10),), 100, start=5),
        ),
        (
            {"stages": [("2s", 120), ("1s", "3/s")], "rate": "60/m"},
            RampingRate((Stage(2, 2), Stage(1, 3)), 100, start=1),
        ),
        ({"fixed_vus": 3}, ClosedVUs(3, 30)),
        ({"fixed_vus": 3, "iterations": 9}, SharedIterations(3, 9)),
        ({"rps": "600/m"}, ClosedVUs(10, 30, rps=10)),
        ({"shape": SHAPE}, ShapedVUs()),
        ({"shape": SHAPE, "max_vus": 7, "duration": "9s"}, ShapedVUs(7, 9)),
        ({"iterations": 100}, SharedIterations(10, 100)),
        ({"iterations": 3}, SharedIterations(3, 3)),
        ({"iterations": 9, "duration": "5s"}, SharedIterations(9, 9, max_duration_s=5)),
        (
            {"iterations_per_vu": 2, "vus": 4, "max_duration": "1m"},
            PerVUIterations(4, 2, max_duration_s=60),
        ),
        (
            {"warmup": "5s", "start_time": 2, "graceful_stop": "0s", "pacing": "1s"},
            ClosedVUs(10, 30, warmup_s=5, start_time_s=2, graceful_stop_s=0, pacing_s=1),
        ),
        ({"think_time": "1s"}, ClosedVUs(10, 30, think_time_s=(1, 1))),
        ({"think_time": ("500ms", 2)}, ClosedVUs(10, 30, think_time_s=(0.5, 2))),
    ],
)
def test_what_the_author_set_chooses_the_model(settings: dict[str, Any], load: Load) -> None:
    assert load_of(settings) == load


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": 5, "iterations": 5}, "rate and iterations are both set"),
        ({"rate": 5, "iterations_per_vu": 5}, "rate and iterations_per_vu are both set"),
        ({"stages": [(1, 1)], "iterations": 5}, "stages and iterations are both set"),
        ({"stages": [(1, 1)], "duration": 5}, "stages and duration are both set"),
        ({"iterations": 1, "iterations_per_vu": 5}, "iterations and iterations_per_vu"),
        ({"rate": 5, "think_time": 1}, "rate and think_time are both set"),
        ({"max_vus": 5}, "max_vus is set without rate or shape"),
        ({"shape": SHAPE, "vus": 5}, "shape and vus are both set"),
        ({"shape": SHAPE, "iterations": 5}, "shape and iterations are both set"),
        ({"shape": SHAPE, "warmup": 5}, "which only shape.. knows"),
        ({"fixed_vus": 5, "vus": 5}, "fixed_vus and vus are both set"),
        ({"fixed_vus": 0}, "fixed_vus is 0 but must be at least 1"),
        ({"rps": 0}, "rps is 0 but must be above 0"),
        ({"rps": "many"}, "rps 'many' is not a rate"),
        ({"max_duration": 5}, "max_duration is set without iterations or iterations_per_vu"),
        ({"vus": "10"}, "vus is '10' but must be a whole number"),
        ({"vus": 1.5}, r"vus is 1\.5 but must be a whole number"),
        ({"vus": True}, "vus is True but must be a whole number"),
        ({"vus": 0}, "vus is 0 but must be at least 1"),
        ({"iterations": 0}, "iterations is 0 but must be at least 1"),
        ({"duration": "abc"}, "duration 'abc' is not a duration"),
        ({"rate": "fast"}, "rate 'fast' is not a rate"),
        ({"rate": 0}, "rate is 0 but must be above 0"),
        ({"rate": 1, "vus": 3, "max_vus": 2}, "vus is 3 but max_vus only allows 2"),
        ({"stages": "30s:100"}, "stages is '30s:100' but must be a list"),
        ({"stages": [("30s",)]}, "stage 1 is .* but must be"),
        ({"stages": [("1s", 1), ("x", 1)]}, "duration of stage 2 'x' is not a duration"),
        ({"stages": [("1s", -1)]}, "target of stage 1 -1 is not a rate"),
        ({"think_time": ("2s", "1s")}, "think_time is .* but must be"),
        ({"think_time": ("2s",)}, "think_time is .* but must be"),
    ],
)
def test_contradictions_are_told_in_words(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        load_of(settings)


@pytest.mark.parametrize(
    ("written", "per_second"),
    [
        ("500/s", 500),
        ("30000/m", 500),
        ("36/h", 0.01),
        (7, 7),
        (0.5, 0.5),
        ("12", 12),
        ("1 / s", 1),
    ],
)
def test_rates(written: object, per_second: float) -> None:
    assert parse_rate(written) == pytest.approx(per_second)


@pytest.mark.parametrize("written", ["", "-1/s", "5/d", "1/s/s", -1, None, True, float("inf")])
def test_other_rates_are_refused(written: object) -> None:
    with pytest.raises(BadInput, match="is not a rate"):
        parse_rate(written)


RAMP = {"stages": [("10s", 100), ("30s", 0)]}


@pytest.mark.parametrize(
    ("settings", "flags", "load"),
    [
        ({"vus": 9}, {}, ClosedVUs(9, 30)),
        ({"vus": 9, "duration": 5}, {"vus": 2}, ClosedVUs(2, 5)),
        ({"shape": SHAPE, "max_vus": 9, "duration": 5}, {"vus": 2}, ClosedVUs(2, 5)),
        ({"shape": SHAPE, "max_vus": 9}, {"duration": 5}, ShapedVUs(9, 5)),
        ({"shape": SHAPE, "max_vus": 9}, {"rate": 2}, ArrivalRate(2, 30, 100)),
        (
            {"rate": "60/m", "stages": [("1s", 120)]},
            {"duration": 5},
            RampingRate((Stage(5, 2),), 100, start=1),
        ),
        ({"vus": 9, "duration": 5}, {"duration": "1s"}, ClosedVUs(9, 1)),
        ({"duration": 5}, {"iterations": 4}, SharedIterations(4, 4)),
        ({"duration": 5}, {"iterations": 4, "duration": 7}, SharedIterations(4, 4, 7)),
        (RAMP, {"iterations": 4}, SharedIterations(4, 4)),
        (RAMP, {"vus": 3}, ClosedVUs(3, 40)),
        (RAMP, {"duration": "4s"}, RampingVUs((Stage(1, 100), Stage(3, 0)))),
        (RAMP, {"rate": 5}, ArrivalRate(5, 40, 100)),
        (RAMP, {"rate": 5, "duration": 2}, ArrivalRate(5, 2, 100)),
        (RAMP, {"stages": [(1, 2)]}, RampingVUs((Stage(1, 2),))),
        ({"rate": 5}, {"stages": [(1, 2)]}, RampingRate((Stage(1, 2),), 100, start=5)),
        ({"rate": 5, "max_vus": 7}, {"rate": 6}, ArrivalRate(6, 30, 7)),
        ({"rate": 5, "max_vus": 7}, {"iterations": 6}, SharedIterations(6, 6)),
        ({"rate": 5}, {"vus": 20}, ArrivalRate(5, 30, 100, vus=20)),
        ({"rate": 5}, {"duration": 2}, ArrivalRate(5, 2, 100)),
        ({"iterations": 100, "max_duration": 9}, {"duration": 2}, ClosedVUs(10, 2)),
        ({"iterations_per_vu": 5, "vus": 2}, {"iterations": 3}, SharedIterations(2, 3)),
        ({"think_time": 1}, {"rate": 5}, ArrivalRate(5, 30, 100)),
    ],
)
def test_flags_win_over_the_file(
    settings: dict[str, Any], flags: dict[str, Any], load: Load
) -> None:
    assert load_of(override(settings, flags)) == load
