"""The text format of Prometheus, by example."""

from __future__ import annotations

import math

from hyperscale.nodes.member.exposition import Metric, histogram, labelled, render, single
from hyperscale.runtime.latency import BOUNDS_S, Latency


def test_a_family_has_help_type_and_sorted_samples() -> None:
    text = render([labelled("members", "gauge", "By state.", "state", {"dead": 1, "alive": 6})])

    assert text == (
        "# HELP hyperscale_members By state.\n"
        "# TYPE hyperscale_members gauge\n"
        'hyperscale_members{state="alive"} 6\n'
        'hyperscale_members{state="dead"} 1\n'
    )


def test_numbers_are_written_as_prometheus_reads_them() -> None:
    values = {(): 0.25}
    text = render(
        [
            Metric("x", "gauge", "h", (), values),
            *(
                single(f"v{index}", "gauge", "h", value)
                for index, value in enumerate((3.0, math.inf, -math.inf, math.nan))
            ),
        ]
    )

    numbers = [line.split()[1] for line in text.splitlines() if not line.startswith("#")]
    assert numbers == ["0.25", "3", "+Inf", "-Inf", "NaN"]


def test_hostile_text_stays_inside_its_quotes() -> None:
    text = render([labelled("a b-c", "counter", "one\ntwo", "why", {'"\\\n': 1})])

    assert text.splitlines() == [
        "# HELP hyperscale_a_b_c one\\ntwo",
        "# TYPE hyperscale_a_b_c counter",
        'hyperscale_a_b_c{why="\\"\\\\\\n"} 1',
    ]


def test_a_histogram_has_growing_buckets_a_sum_and_a_count() -> None:
    took = Latency()
    for seconds in (0.0004, 0.001, 0.3, 60.0):
        took.add(seconds)
    lines = render([histogram("x_seconds", "h", "stage", {"sync": took})]).splitlines()

    assert lines[1] == "# TYPE hyperscale_x_seconds histogram"
    buckets = dict(line.removeprefix("hyperscale_x_seconds").rsplit(" ", 1) for line in lines[2:])
    assert len(buckets) == len(BOUNDS_S) + 3
    assert buckets['_bucket{stage="sync",le="0.0005"}'] == "1"
    assert buckets['_bucket{stage="sync",le="0.001"}'] == "2"
    assert buckets['_bucket{stage="sync",le="0.5"}'] == "3"
    assert buckets['_bucket{stage="sync",le="5"}'] == "3"
    assert buckets['_bucket{stage="sync",le="+Inf"}'] == "4"
    assert buckets['_count{stage="sync"}'] == "4"
    assert float(buckets['_sum{stage="sync"}']) == 60.3014
