"""Voters with different lists: who goes on, who stays out, and what is said about it."""

from __future__ import annotations

import pytest

from hyperscale.cluster.election import list_digest
from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import Member, MemberState
from hyperscale.nodes.member.electorate import COMPARE_S, Comparison, Electorate, compare
from hyperscale.nodes.member.queries import Vitals

THREE = ("m1", "m2", "m3")
LISTS = {"m1": ("m1",), "m2": THREE, "m3": THREE}


def member(name: str, state: MemberState = MemberState.ALIVE, role: str = "manager") -> Member:
    made = Member(Node(name, 1, role, "local", ("127.0.0.1", 1), ("127.0.0.1", 1)), 0.0)
    made.state, made.confirmed = state, True
    return made


def vitals(voters: tuple[str, ...], term: int = 0) -> Vitals:
    return Vitals(0, term, None, b"", list_digest(voters) if voters else b"")


def seen_by(
    name: str, lists: dict[str, tuple[str, ...]], state: MemberState = MemberState.ALIVE
) -> Electorate:
    others = [(member(one, state), vitals(has)) for one, has in lists.items() if one != name]
    made = Electorate(name, lists[name])
    made.learn(compare("manager", lists[name], others), looked=True, uptime_s=0.0)
    return made


def test_those_who_agree_and_are_more_go_on_and_the_odd_one_stays_out() -> None:
    assert {name: seen_by(name, LISTS).barred for name in LISTS} == {
        "m1": True, "m2": False, "m3": False,
    }  # fmt: skip
    assert seen_by("m1", LISTS).sentence == (
        "m2 and m3 have another list of voters than m1, which has m1: "
        "m1 takes no part until all have the same --voters"
    )
    assert seen_by("m2", LISTS).sentence == (
        "m1 has another list of voters than m2, which has m1,m2,m3: "
        "m1 is not listened to until all have the same --voters"
    )


@pytest.mark.parametrize(
    "lists",
    [
        {"m1": ("m1",), "m2": ("m1", "m2")},
        {"m1": ("m1",), "m2": ("m2",), "m3": ("m3",)},
        {"m1": ("m1", "m2"), "m2": ("m1", "m2"), "m3": THREE, "m4": THREE},
    ],
)
def test_where_no_list_has_most_nobody_takes_part(lists: dict[str, tuple[str, ...]]) -> None:
    assert all(seen_by(name, lists).barred for name in lists)


def test_equal_lists_are_nothing_to_speak_of() -> None:
    made = seen_by("m1", {"m1": THREE, "m2": ("m3", "m2", "m1")})
    assert not made.barred
    assert made.sentence == made.why_barred == ""


def test_the_dead_still_count_and_those_who_left_do_not() -> None:
    """Otherwise the smaller side of a partition would lead once it lost sight of the other."""
    assert seen_by("m1", LISTS, MemberState.DEAD).barred
    assert not seen_by("m1", LISTS, MemberState.LEFT).barred


def test_other_roles_and_those_who_do_not_vote_are_no_voters() -> None:
    others = [(member("w1", role="worker"), vitals(("x",))), (member("m2"), vitals(()))]
    assert compare("manager", THREE, others) == Comparison()


def test_the_term_of_the_others_is_known() -> None:
    others = [(member("m1"), vitals(("m1",), term=9)), (member("m3"), vitals(THREE, term=11))]
    assert compare("manager", THREE, others).other_term == 9


def test_a_voter_that_starts_compares_before_it_takes_part() -> None:
    made = Electorate("m1", ("m1",))
    untold = Comparison(untold=("m2",))
    made.learn(Comparison(), looked=False, uptime_s=0.0)
    assert made.barred
    assert "compares its list of voters" in made.why_barred
    made.learn(untold, looked=True, uptime_s=0.0)
    assert made.barred
    made.learn(untold, looked=True, uptime_s=COMPARE_S)
    assert not made.barred
