"""One load in several datacenters: each has its part, together they are the whole."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale import Workflow, step
from hyperscale.errors import BadInput
from hyperscale.testing import URL, HTTPResponse
from hyperscale.workload.apportion import apportion, turns
from hyperscale.workload.data import unread
from hyperscale.workload.datacenters import read_datacenters
from hyperscale.workload.load import (
    ArrivalRate,
    ClosedVUs,
    Load,
    PerVUIterations,
    RampingRate,
    RampingVUs,
    ShapedVUs,
    SharedIterations,
    Stage,
    split_by,
)
from hyperscale.workload.plan import plan_test

SHARES = st.lists(st.integers(1, 40), min_size=1, max_size=5)


@given(st.integers(0, 500), SHARES)
def test_everything_is_given_out_and_more_for_all_is_less_for_nobody(
    total: int, shares: list[int]
) -> None:
    now, before = apportion(total, shares), apportion(max(0, total - 1), shares)
    assert sum(now) == total
    assert all(one >= other for one, other in zip(now, before, strict=True))
    exact = [total * share / sum(shares) for share in shares]
    assert all(abs(one - fair) <= len(shares) for one, fair in zip(now, exact, strict=True))


def test_turns_are_even() -> None:
    assert turns((60, 40)) == (0, 1, 0, 1, 0)


@pytest.mark.parametrize(
    "load",
    [
        ClosedVUs(50, 30),
        RampingVUs((Stage(10, 77), Stage(5, 3)), start=11),
        SharedIterations(20, 1_003),
        PerVUIterations(13, 7),
        ArrivalRate(100, 60, 200, vus=10),
        RampingRate((Stage(10, 100), Stage(10, 20)), 100, start=50),
    ],
    ids=lambda load: type(load).__name__,
)
def test_the_parts_of_a_load_are_the_load(load: Load) -> None:
    parts = split_by(load, [60, 30, 10])
    assert sum(part.peak_vus for part in parts) == load.peak_vus
    if load.planned_iterations is not None:
        assert sum(part.planned_iterations or 0 for part in parts) == load.planned_iterations
    assert sum(part.planned_load or 0 for part in parts) == pytest.approx(load.planned_load)
    assert parts[0].peak_vus > parts[1].peak_vus > parts[2].peak_vus >= 1


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (ClosedVUs(2, 30), "2 virtual users split as 90 to 10"),
        (SharedIterations(50, 4), "4 iterations split as 90 to 10"),
        (ShapedVUs(100, 10), "a load whose shape is code"),
    ],
    ids=["users", "iterations", "shape"],
)
def test_a_share_of_which_nothing_is_left_is_refused(load: Load, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        split_by(load, [90, 10])


@given(st.integers(1, 60), SHARES, st.integers(1, 3))
def test_each_row_is_in_one_place(rows: int, shares: list[int], cores: int) -> None:
    read = unread(list(range(rows)))
    assert read is not None
    feed = read.read()
    wanted = apportion(rows, shares)
    found = [
        list(itertools.islice(feed.rows_for(core, cores, 0, (number, *shares)), most))
        for number, part in enumerate(wanted)
        for core in range(cores)
        if (most := len(range(core, part, cores)))
    ]
    assert sorted(row for part in found for row in part) == list(range(rows))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, {}),
        ("eu", {"eu": 0}),
        (["eu", "us"], {"eu": 0, "us": 0}),
        (["eu=60", "us = 40"], {"eu": 60, "us": 40}),
        ({"eu": 3, "us": 1}, {"eu": 3, "us": 1}),
    ],
)
def test_datacenters_are_said_by_name_or_with_a_share(said: object, meant: dict[str, int]) -> None:
    assert read_datacenters(said) == meant


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["eu=60", "us"], "either each datacenter has a share"),
        (["eu", "eu"], "eu twice"),
        (["eu=0"], "0 is no share"),
        (["eu=1.5"], "'1.5' is no share"),
        ({"eu": True}, "True is no share"),
        ({"eu": 5_000}, "5000 is no share"),
        ([""], "'' is no name"),
        (7, "7, not a list"),
    ],
)
def test_what_cannot_be_meant_is_said(said: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_datacenters(said)


class InEurope(Workflow):
    datacenters = {"eu": 60, "us": 40}

    @step()
    async def get(self, url: URL = "http://127.0.0.1/") -> HTTPResponse:
        return await self.client.http.get(url)


class Anywhere(Workflow):
    @step()
    async def get(self, url: URL = "http://127.0.0.1/") -> HTTPResponse:
        return await self.client.http.get(url)


class InAsia(Anywhere):
    datacenters = ["ap"]


def test_the_test_says_where_it_runs_once_for_all() -> None:
    assert plan_test([InEurope, Anywhere]).datacenters == {"eu": 60, "us": 40}
    assert plan_test([Anywhere]).datacenters == {}
    with pytest.raises(BadInput, match="InEurope and InAsia name different datacenters"):
        plan_test([InEurope, InAsia])
