"""What one datacenter is asked to run."""

from __future__ import annotations

import pytest

from hyperscale.nodes.gate.shares import body_in, in_place, vus_in
from hyperscale.nodes.protocol.jobs import Body, Policy
from hyperscale.nodes.protocol.where import check_where
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import ClosedVUs, Load


def body_of(load: Load) -> Body:
    facts = WorkflowFacts(name="Shop", is_test=True, priority="auto", load=load)
    return Body(workflows=(facts,), source=b"", overrides=b"")


@pytest.mark.parametrize(
    ("datacenters", "users", "first", "among"),
    [
        ({"eu": 0, "us": 0}, [50, 50], [0, 50], [(0, 1, 1), (1, 1, 1)]),
        ({"eu": 60, "us": 40}, [30, 20], [0, 30], [(0, 60, 40), (1, 60, 40)]),
    ],
)
def test_users_have_numbers_of_their_own(
    datacenters: dict[str, int], users: list[int], first: list[int], among: list[tuple[int, ...]]
) -> None:
    bodies = [body_in(body_of(ClosedVUs(50, 10)), datacenters, name) for name in datacenters]
    facts = [body.workflows[0] for body in bodies]
    assert [one.load.peak_vus for one in facts] == users
    assert [one.first_vu for one in facts] == first
    assert [body.among for body in bodies] == among


def test_a_share_without_a_user_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"Shop: 2 virtual users .* \(eu=90, us=10\)"):
        body_in(body_of(ClosedVUs(2, 10)), {"eu": 90, "us": 10}, "us")


def test_scaling_is_split_like_the_load() -> None:
    assert vus_in(10, {"eu": 60, "us": 40}) == {"eu": 6, "us": 4}
    assert vus_in(10, {"eu": 0, "us": 0}) == {"eu": 10, "us": 10}
    with pytest.raises(ValueError, match="1 virtual users leave none for us"):
        vus_in(1, {"eu": 60, "us": 40})


@pytest.mark.parametrize(
    ("asked", "chosen", "found"),
    [
        ({}, ("ap", "us"), {"ap": 0, "us": 0}),
        ({"us": 0}, ("us", "ap"), {"us": 0, "ap": 0}),
        ({"eu": 60, "us": 40}, ("us", "ap"), {"ap": 60, "us": 40}),
        ({"us": 60, "eu": 40}, ("us", "ap"), {"us": 60, "ap": 40}),
    ],
)
def test_who_comes_in_place_of_another_has_its_share(
    asked: dict[str, int], chosen: tuple[str, ...], found: dict[str, int]
) -> None:
    assert in_place(asked, chosen) == found


@pytest.mark.parametrize(
    ("asked", "count", "policy", "words"),
    [
        ({"eu": 1, "us": 0}, 0, "strict", "either each datacenter has a share"),
        ({}, 0, "prefer", "it prefers no datacenter"),
        ({"eu": 0}, 2, "any", "it runs in any datacenter, and names some"),
        ({}, 0, "any", "does not say in how many"),
        ({"eu": 0}, 2, "strict", "names 1 datacenters and wants 2"),
        ({"eu": 60, "us": 40}, 3, "prefer", "2 shares cannot be given to 3"),
    ],
)
def test_what_makes_no_sense_is_refused(
    asked: dict[str, int], count: int, policy: Policy, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        check_where(asked, count, policy)
