from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.ui.plot import ASCII, BLOCKS, BRAILLE, Pen, ceiling, draw


def lines(curve: list[tuple[float, float]], pen: Pen, width: int = 6, height: int = 3) -> list[str]:
    drawn = draw([curve], width=width, height=height, until=6.0, top=3.0, pen=pen)
    return ["".join(text for text, _ in runs) for runs in drawn]


def test_rising_line_in_ascii() -> None:
    assert lines([(0.5, 0.0), (3.5, 1.5), (5.5, 3.0)], ASCII) == ["     *", "  *** ", "**    "]


def test_rising_line_in_braille() -> None:
    assert lines([(0.0, 0.0), (5.9, 3.0)], BRAILLE) == ["    ⡠⠊", "  ⡠⠊  ", "⡠⠊    "]


def test_peaks_survive_when_samples_share_a_column() -> None:
    flat_with_a_peak = [(i / 100, 3.0 if i == 250 else 0.0) for i in range(600)]
    assert "*" in lines(flat_with_a_peak, ASCII)[0]


def test_gap_is_not_bridged() -> None:
    assert lines([(0.5, 3.0), (2.5, math.nan), (5.5, 3.0)], ASCII)[0] == "*    *"


def test_earlier_curve_owns_a_shared_cell() -> None:
    runs = draw([[(0, 1.0)], [(0, 1.0)]], width=1, height=1, until=1, top=1, pen=ASCII)
    assert runs == [[("*", 0)]]


curves = st.lists(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e9) | st.just(math.nan)), max_size=60),
    max_size=3,
)


@given(
    curves=curves,
    width=st.integers(1, 60),
    height=st.integers(1, 20),
    until=st.floats(0, 1e6),
    top=st.floats(0, 1e9),
    pen=st.sampled_from([ASCII, BLOCKS, BRAILLE]),
)
def test_every_drawing_fills_its_box_exactly(
    curves: list[list[tuple[float, float]]],
    width: int,
    height: int,
    until: float,
    top: float,
    pen: Pen,
) -> None:
    drawn = draw(curves, width=width, height=height, until=until, top=top, pen=pen)
    assert len(drawn) == height
    assert all(sum(len(text) for text, _ in runs) == width for runs in drawn)
    assert all(-1 <= owner < len(curves) for runs in drawn for _, owner in runs)


@given(st.floats(1e-9, 1e12))
def test_ceiling_is_close_above(value: float) -> None:
    assert value <= ceiling(value) * (1 + 1e-9)
    assert ceiling(value) <= value * 2 * (1 + 1e-9)


@pytest.mark.parametrize(("value", "top"), [(0, 1), (7, 8), (41_000, 50_000), (0.03, 0.03)])
def test_ceiling_is_round(value: float, top: float) -> None:
    assert ceiling(value) == pytest.approx(top)
