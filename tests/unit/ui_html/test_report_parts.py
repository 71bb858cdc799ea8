"""Numbers, axes and markup: the pure parts under the report."""

from __future__ import annotations

import math
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.ui.html import numbers, scale
from hyperscale.ui.html.markup import Html, join, tag, text

POSITIVE = st.floats(min_value=1e-3, max_value=3.6e6)


def spaced(shown: str) -> str:
    return shown.replace(numbers.SPACE, " ")


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0 ms"),
        (0.42, "420 µs"),
        (0.9996, "1.00 ms"),
        (4.214, "4.21 ms"),
        (9.996, "10.0 ms"),
        (212.4, "212 ms"),
        (999.6, "1.00 s"),
        (1204, "1.20 s"),
        (61_000, "1m 01s"),
        (3_700_000, "1h 01m"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_milliseconds(ms: float, shown: str) -> None:
    assert spaced(numbers.milliseconds(ms)) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0/s"), (5, "5/s"), (12.34, "12.3/s"), (999.6, "1.00k/s"), (70_712, "70.7k/s")],
)
def test_rates(value: float, shown: str) -> None:
    assert numbers.rate(value) == shown


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0 %"),
        (1, 10_000_000, "<0.01 %"),
        (2, 10_000, "0.02 %"),
        (17, 1000, "1.7 %"),
        (9_999_999, 10_000_000, ">99.99 %"),
        (10, 10, "100 %"),
        (0, 0, "–"),
    ],
)
def test_shares(part: int, whole: int, shown: str) -> None:
    assert spaced(numbers.share(part, whole)) == shown


@given(part=st.integers(1, 10**12), rest=st.integers(1, 10**12))
def test_a_share_is_zero_or_whole_only_when_it_is(part: int, rest: int) -> None:
    assert spaced(numbers.share(part, part + rest)) not in ("0 %", "0.00 %", "100 %")


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 B"), (999, "999 B"), (1234, "1.23 kB"), (2.34e9, "2.34 GB")]
)
def test_sizes(value: float, shown: str) -> None:
    assert spaced(numbers.size(value)) == shown


@pytest.mark.parametrize(
    ("label", "shown"),
    [("20.0k", "20k"), ("1.50k", "1.5k"), ("100 ms", "100 ms"), ("0.25", "0.25")],
)
def test_axis_labels_are_tidy(label: str, shown: str) -> None:
    assert numbers.tidy(label) == shown


@given(high=POSITIVE)
def test_a_linear_axis_holds_its_values(high: float) -> None:
    axis = scale.linear(high)
    assert axis.high >= high * (1 - 1e-9)
    assert 2 <= len(axis.ticks) <= 7
    assert axis.position(0) == 0
    assert 0.3 < axis.position(high) <= 1


@given(one=POSITIVE, other=POSITIVE)
def test_a_logarithmic_axis_holds_its_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    axis = scale.logarithmic(low, high)
    assert axis.low <= low * 1.001
    assert axis.high >= high * 0.999
    assert 1 <= len(axis.ticks) <= 11
    assert 0 <= axis.position(low) <= axis.position(high) <= 1


@given(end=st.floats(min_value=0.05, max_value=1e7))
def test_a_time_axis_ends_with_the_run(end: float) -> None:
    axis, step = scale.time(end)
    assert axis.high == end
    assert 1 <= len(axis.ticks) <= 9
    assert all(0 <= tick <= end * 1.0001 for tick in axis.ticks)
    assert step > 0


def test_users_are_whole() -> None:
    assert scale.whole(1).ticks == [0, 1]
    assert scale.whole(0).ticks == [0, 1]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags = 0
        self.words = ""
        self.title = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += 1
        self.title = dict(attrs)["title"] or ""

    def handle_data(self, data: str) -> None:
        self.words += data


@given(words=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"])))
def test_any_text_survives_as_text(words: str) -> None:
    reader = Reader()
    reader.feed(tag("p", words, title=words))
    reader.close()
    assert (reader.tags, reader.words, reader.title) == (1, words, words)


def test_markup_joined_with_text_is_no_markup() -> None:
    assert join([Html("<b>"), "<b>", None, [Html("<i>")]]) == "<b>&lt;b&gt;<i>"
    assert tag("p", Html("<b>") + "x") == "<p>&lt;b&gt;x</p>"
    assert text("\ud800\x00") == "\N{REPLACEMENT CHARACTER}" * 2
