"""Which datacenters a job gets, by name, count and policy."""

from __future__ import annotations

import pytest

from hyperscale.nodes.gate.choosing import Candidate, placed
from hyperscale.nodes.protocol.jobs import Policy

THREE = [Candidate("ap"), Candidate("eu", alive=False), Candidate("us")]


@pytest.mark.parametrize(
    ("wanted", "count", "policy", "found"),
    [
        ({}, 0, "strict", {"ap": 0, "eu": 0, "us": 0}),
        ({"us": 0, "eu": 0}, 0, "strict", {"us": 0, "eu": 0}),
        ({}, 2, "any", {"ap": 0, "us": 0}),
        ({"us": 0}, 0, "prefer", {"us": 0}),
        ({"us": 0}, 2, "prefer", {"us": 0, "ap": 0}),
        ({"eu": 60, "us": 40}, 0, "prefer", {"ap": 60, "us": 40}),
        ({"us": 60, "eu": 40}, 0, "prefer", {"us": 60, "ap": 40}),
    ],
)
def test_chosen(wanted: dict[str, int], count: int, policy: Policy, found: dict[str, int]) -> None:
    assert list(placed(wanted, count, policy, THREE).items()) == list(found.items())


@pytest.mark.parametrize(
    ("wanted", "count", "policy", "words"),
    [
        ({"mars": 0}, 0, "strict", "no datacenter 'mars', only ap, eu, us"),
        ({"eu": 1, "us": 0}, 0, "strict", "either each datacenter has a share"),
        ({}, 3, "any", "needs 3 datacenters, and of 3 only 2 can take it: ap, us"),
        ({}, 0, "prefer", "it prefers no datacenter"),
        ({"eu": 0}, 2, "any", "it runs in any datacenter, and names some"),
        ({}, 0, "any", "does not say in how many"),
        ({"eu": 0}, 2, "strict", "names 1 datacenters and wants 2"),
        ({"eu": 60, "us": 40}, 3, "prefer", "2 shares cannot be given to 3"),
    ],
)
def test_refused(wanted: dict[str, int], count: int, policy: Policy, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        placed(wanted, count, policy, THREE)
