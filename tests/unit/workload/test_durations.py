from __future__ import annotations

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30),
        ("1m", 60),
        ("1m30s", 90),
        ("1h", 3600),
        ("1h2m3s4ms", 3723.004),
        ("1d", 86400),
        ("1.5s", 1.5),
        (" 10s ", 10),
        ("45", 45),
        (30, 30),
        (2.5, 2.5),
        (0, 0),
    ],
)
def test_what_people_write(written: object, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    [
        *("abc", "", " ", "10x", "s", "1s1m", "1m1m", "-5s", "10 s", "1e3s", "½s", "１s x"),
        *(-1, float("nan"), float("inf"), None, True, [], b"10s"),
    ],
)
def test_anything_else_is_refused_by_name(written: object) -> None:
    with pytest.raises(BadInput, match=r"warmup .* is not a duration") as caught:
        parse_duration(written, "warmup")
    assert repr(written) in caught.value.message
    assert "500ms" in caught.value.hint


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0005, "0.5ms"),
        (0.5, "500ms"),
        (0.9999999, "1s"),
        (2.5, "2.5s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (3723.004, "1h2m3.004s"),
        (180_000, "50h"),
    ],
)
def test_told_to_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
