"""How far datacenters of a dev cluster are from each other, from text to delays."""

from __future__ import annotations

import pytest

from hyperscale.cli.dev_links import Links, names_in
from hyperscale.errors import BadInput

NAMES = ["eu", "us", "ap"]


def ms(links: Links, way: str, protocol: str = "tcp") -> float | None:
    source, target = way.split(">")
    delay_s = links.delay_s(source, target, protocol)
    return None if delay_s is None else round(delay_s * 1000, 3)


def test_a_bare_duration_is_the_round_trip_between_any_two() -> None:
    links = Links("80ms", NAMES)
    assert [ms(links, way) for way in ("eu>us", "us>eu", "ap>us")] == [40, 40, 40]
    assert ms(links, "eu>eu") == 0


def test_two_of_which_nothing_is_said_are_as_far_as_the_way_over_a_third() -> None:
    links = Links("eu-us=80ms,eu-ap=160ms", NAMES)
    assert (ms(links, "us>ap"), ms(links, "ap>us", "udp")) == (120, 120)
    assert str(links) == "ap-eu 160ms, ap-us 240ms, eu-us 80ms"
    assert names_in("eu-us=80ms,eu-ap=160ms") == NAMES


def test_what_stands_further_behind_wins() -> None:
    links = Links("80ms\neu>us=300ms  # the other way as before\nap=10ms", NAMES)
    assert (ms(links, "eu>us"), ms(links, "us>eu"), ms(links, "us>ap")) == (300, 40, 5)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("eu=cut", {"eu>us", "us>eu", "eu>ap", "ap>eu"}),
        ("eu-us=cut", {"eu>us", "us>eu"}),
        ("eu>us=cut", {"eu>us"}),
        ("eu=cut,eu-ap=10ms", {"eu>us", "us>eu"}),
    ],
)
def test_what_is_cut(text: str, cut: set[str]) -> None:
    links = Links(f"80ms,{text}", NAMES)
    ways = {f"{one}>{other}" for one in NAMES for other in NAMES}
    assert {way for way in ways if ms(links, way) is None} == cut


def test_one_protocol_may_pass_where_the_other_does_not() -> None:
    links = Links("80ms,eu-us/udp=cut", NAMES)
    assert (ms(links, "eu>us", "udp"), ms(links, "eu>us", "tcp")) == (None, 40)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("eu-mars=80ms", "no datacenter 'mars'"),
        ("eu-us=fast", "'fast' is not a duration"),
        ("eu-us", "cannot be read at 'eu-us'"),
        ("cut", "cannot be read at 'cut'"),
        ("eu-eu=80ms", "names one datacenter twice"),
        ("eu-us=80ms", "does not say how far ap is from eu"),
    ],
)
def test_what_cannot_be_meant_is_said(text: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        Links(text, NAMES)
