"""The text format of Prometheus, by example, and read back by its own parser."""

from __future__ import annotations

import math

from prometheus_client.parser import text_string_to_metric_families

from hyperscale.nodes.member.metrics import Metric, histogram, labelled, single
from hyperscale.nodes.member.metrics_text import render
from hyperscale.runtime.latency import BOUNDS_S, Latency


def test_a_family_has_help_type_and_sorted_samples() -> None:
    text = render([labelled("members", "gauge", "By state.", "state", {"dead": 1, "alive": 6})])

    assert text.decode() == (
        "# HELP hyperscale_members By state.\n"
        "# TYPE hyperscale_members gauge\n"
        'hyperscale_members{state="alive"} 6.0\n'
        'hyperscale_members{state="dead"} 1.0\n'
    )


def test_numbers_are_written_as_prometheus_reads_them() -> None:
    given = (0.25, 3.0, math.inf, -math.inf, math.nan)
    text = render(single(f"v{index}", "gauge", "h", value) for index, value in enumerate(given))

    numbers = [line.split()[1] for line in text.decode().splitlines() if line[0] != "#"]
    assert numbers == ["0.25", "3.0", "+Inf", "-Inf", "NaN"]


def test_counters_keep_their_name_and_hostile_text_stays_inside_its_quotes() -> None:
    text = render([labelled("a_total", "counter", "one\ntwo", "why", {'"\\\n': 1})]).decode()

    assert text.splitlines() == [
        "# HELP hyperscale_a_total one\\ntwo",
        "# TYPE hyperscale_a_total counter",
        'hyperscale_a_total{why="\\"\\\\\\n"} 1.0',
    ]
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"why": '"\\\n'}


def test_several_labels_are_told_apart() -> None:
    text = render([Metric("x", "gauge", "h", ("before", "after"), {("a", "b"): 1, ("b", "a"): 2})])

    (family,) = text_string_to_metric_families(text.decode())
    assert [(one.labels["before"], one.value) for one in family.samples] == [("a", 1), ("b", 2)]


def test_a_histogram_has_growing_buckets_a_sum_and_a_count() -> None:
    took = Latency()
    for seconds in (0.0004, 0.001, 0.3, 60.0):
        took.add(seconds)
    text = render([histogram("x_seconds", "h", "stage", {"sync": took})]).decode()

    (family,) = text_string_to_metric_families(text)
    assert family.type == "histogram"
    assert {one.labels["stage"] for one in family.samples} == {"sync"}
    buckets = {one.labels["le"]: one.value for one in family.samples if "le" in one.labels}
    assert len(buckets) == len(BOUNDS_S) + 1
    found = [buckets[bound] for bound in ("0.0005", "0.001", "0.5", "5.0", "+Inf")]
    assert found == [1, 2, 3, 3, 4]
    rest = {one.name: one.value for one in family.samples if "le" not in one.labels}
    assert rest == {"hyperscale_x_seconds_count": 4, "hyperscale_x_seconds_sum": 60.3014}
