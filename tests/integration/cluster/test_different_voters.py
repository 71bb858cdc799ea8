"""Voters that were started with different lists: one electorate at most, and everybody says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hyperscale.nodes.member import report
from hyperscale.nodes.member.node import Node

from .test_node_on_loopback import address, running, settings, until


class Terms:
    """Who led which term."""

    def __init__(self) -> None:
        self.leaders: dict[int, set[str]] = {}

    def watch(self, node: Node) -> None:
        election = node.election
        assert election is not None
        if election.may_lead():
            self._note(election.term, node)
        election.on_become_leader.append(lambda term: self._note(term, node))

    def _note(self, term: int, node: Node) -> None:
        self.leaders.setdefault(term, set()).add(node.settings.id)

    @property
    def shared(self) -> dict[int, set[str]]:
        return {term: names for term, names in self.leaders.items() if len(names) > 1}


def leads(node: Node) -> bool:
    return node.election is not None and node.election.may_lead()


def test_a_leader_with_a_list_of_its_own_yields_to_those_who_agree(tmp_path: Path) -> None:
    async def story() -> None:
        terms = Terms()
        async with running(settings(tmp_path, "a", voters="a")) as alone:
            terms.watch(alone)
            await until(lambda: leads(alone))
            seeds = [address(alone)]
            async with running(settings(tmp_path, "b", seed=seeds, voters="a,b,c")) as b:
                terms.watch(b)
                async with running(settings(tmp_path, "c", seed=seeds, voters="c,b,a")) as c:
                    terms.watch(c)
                    await until(lambda: leads(b) or leads(c))
                    await until(lambda: not leads(alone))
                    assert alone.election is not None
                    assert alone.election.leader is None
                    assert "b and c have another list of voters than a" in alone.barred
                    await until(lambda: "a has another list of voters than b" in b.difference)
                    assert not b.barred
                    assert report.members(c).difference == c.difference != ""
        assert terms.shared == {}

    asyncio.run(story())


def test_a_voter_that_starts_compares_its_list_before_it_leads(tmp_path: Path) -> None:
    async def story() -> None:
        terms = Terms()
        async with running(settings(tmp_path, "b", voters="a,b,c")) as b:
            terms.watch(b)
            seeds = [address(b)]
            async with (
                running(settings(tmp_path, "c", seed=seeds, voters="a,b,c")) as c,
                running(settings(tmp_path, "a", seed=seeds, voters="a")) as alone,
            ):
                for node in (alone, c):
                    terms.watch(node)
                await until(lambda: leads(b) or leads(c))
                await until(lambda: "takes no part until all have the same" in alone.barred)
                assert all("a" not in names for names in terms.leaders.values())
        assert terms.shared == {}

    asyncio.run(story())


def test_who_is_started_again_with_the_right_list_takes_part(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "b", voters="a,b")) as b:
            seeds = [address(b)]
            async with running(settings(tmp_path, "a", seed=seeds, voters="a")) as wrong:
                await until(lambda: wrong.difference and b.difference)
                assert wrong.barred
                assert b.barred
                place = address(wrong)
            async with running(settings(tmp_path, "a", seed=seeds, voters="a,b", bind=place)) as a:
                await until(lambda: leads(a) or leads(b))
                assert not a.difference
                assert not b.difference

    asyncio.run(story())
