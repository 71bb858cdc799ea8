from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.ui import text


@pytest.mark.parametrize(
    ("ms", "full", "short"),
    [
        (0, "0s", "0s"),
        (0.35, "350µs", "350µs"),
        (0.99999, "1ms", "1.00ms"),
        (1.5, "1.5ms", "1.50ms"),
        (212.351, "212.35ms", "212ms"),
        (999.999, "1s", "1.00s"),
        (1200, "1.2s", "1.20s"),
        (62_000, "1m02s", "1m02s"),
        (3_725_000, "1h02m", "1h02m"),
        (math.nan, "-", "-"),
        (math.inf, "-", "-"),
    ],
)
def test_durations(ms: float, full: str, short: str) -> None:
    assert text.duration(ms) == full
    assert text.short_duration(ms) == short


@given(st.floats(0, 3.5e8))
def test_short_duration_fits_its_column(ms: float) -> None:
    assert len(text.short_duration(ms)) <= 6


@given(st.floats(0, 1e14))
def test_short_count_fits_its_column(n: float) -> None:
    assert len(text.short_count(n)) <= 7


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 0, "0.00%"),
        (0, 5, "0.00%"),
        (1, 10**6, "<0.01%"),
        (999_999, 10**6, ">99.99%"),
        (5, 5, "100.00%"),
    ],
)
def test_percent_never_rounds_to_the_ends(part: int, whole: int, shown: str) -> None:
    assert text.percent(part, whole) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 B"), (999, "999 B"), (119_000, "119 kB"), (1.24e9, "1.2 GB"), (3e18, "3,000.0 PB")],
)
def test_sizes(value: float, shown: str) -> None:
    assert text.size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0/s"), (0.25, "0.25/s"), (40_120.4, "40,120/s"), (math.nan, "-")]
)
def test_rates(value: float, shown: str) -> None:
    assert text.rate(value) == shown


@pytest.mark.parametrize(("s", "shown"), [(0, "00:00"), (62.9, "01:02"), (3723, "1:02:03")])
def test_clock(s: float, shown: str) -> None:
    assert text.clock(s) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(3.0, "3"), (1_234_567.0, "1,234,567"), (0.12345, "0.1235"), (1234.5, "1,234.50")],
)
def test_numbers_of_authors(value: float, shown: str) -> None:
    assert text.number(value) == shown


@given(st.text(), st.integers(0, 50))
def test_fit_never_exceeds(content: str, width: int) -> None:
    assert len(text.fit(content, width)) <= width


@given(st.text())
def test_one_line_is_printable(content: str) -> None:
    assert text.one_line(content).isprintable()


@given(st.text())
def test_ascii_keeps_the_length(content: str) -> None:
    plain = text.to_ascii(content)
    assert plain.isascii()
    assert len(plain) == len(content)
