"""The text format of Prometheus, by example."""

from __future__ import annotations

import math

from hyperscale.nodes.member.exposition import Metric, labelled, render, single


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
