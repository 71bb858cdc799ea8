"""What people read of datacenters and of choices among them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hyperscale.cli.datacenters import datacenter_lines, route_lines
from hyperscale.cluster.datacenters import Facts
from hyperscale.cluster.routing import Candidate, Policy, Snapshot, Wish, choose
from hyperscale.nodes.protocol.datacenters import DatacenterState, DatacenterStates, RouteView
from hyperscale.ui.output import Paint
from tests.integration.cli.program import assert_refused, hyperscale

PLAIN = Paint(False)
FACTS = Facts(
    managers=3, managers_alive=2, workers=4, workers_healthy=4, cores=16, cores_free=9, queued=2
)
WELL = DatacenterState(
    name="eu", state="healthy", reach="reachable", rtt_s=0.0123, rtt_error_s=0.0004,
    leader="m2", facts=FACTS, heard_s=1.0, managers_known=3,
)  # fmt: skip


def test_a_row_has_what_an_operator_asks_for() -> None:
    (first, _, head, row) = datacenter_lines(
        DatacenterStates(gate="g1", datacenters=(WELL,)), PLAIN
    )
    assert first == "1 datacenter, 1 healthy, as g1 sees"
    assert head.split()[:3] == ["DATACENTER", "STATE", "RTT"]
    for text in ("12 ms ±0.4 ms", "2 of 3", "m2", "4 of 4", "16", "9", "1s ago"):
        assert text in row


def test_what_is_wrong_is_said_once_with_all_there_is_to_it() -> None:
    gone = msgspec.structs.replace(
        WELL, state="unhealthy", reach="unreachable", why="no manager answers: timed out",
        circuits_open=2, other_gates=("g3",),
    )  # fmt: skip
    shaky = msgspec.structs.replace(WELL, missed=2)
    never = DatacenterState(name="ap", state="degraded", reach="unreachable", why="nothing yet")
    told = DatacenterStates(gate="g1", datacenters=(gone, shaky, never), line_in_doubt=True)
    lines = datacenter_lines(told, PLAIN)
    assert "it may be this gate that is cut off" in lines[1]
    why = "no manager answers: timed out; 2 of 3 managers fail what jobs ask; g3 reaches it"
    assert lines[4].endswith(why)
    assert lines[5].endswith("it missed 2 probes in a row")
    assert "never" in lines[6]


def view(*candidates: Candidate, by_distance: bool = True, policy: Policy = "any") -> RouteView:
    wish = Wish(job_id="j", count=1, policy=policy)
    snapshot = Snapshot(wish=wish, candidates=candidates, by_distance=by_distance)
    return RouteView(gate="g1", decision=choose(snapshot))


def near(name: str, **given: object) -> Candidate:
    known = {"rtt_s": 0.05, "samples": 20, "cores": 8, "cores_free": 8, **given}
    return Candidate(name=name, **known)  # type: ignore[arg-type]


def test_a_choice_is_explained_by_its_scores() -> None:
    lines = route_lines(
        view(near("eu"), near("us", rtt_s=0.2), near("ap", health=3, why="ill")), 7, PLAIN
    )
    assert lines[:2] == [
        "g1 would run it in eu; next would be us",
        "because: the best by score",
    ]
    assert "the test can use 7 cores at once" in lines
    assert lines[-3].split()[:4] == ["1*", "eu", "healthy", "52.0"]
    assert lines[-1].split() == ["-", "ap", "unhealthy", "-", "-", "-", "-", "-", "ill"]


def test_without_distances_it_says_so() -> None:
    lines = route_lines(view(near("eu", samples=1), by_distance=False), 0, PLAIN)
    assert any("not known well enough" in line for line in lines)


def test_nowhere_says_why() -> None:
    lines = route_lines(view(near("eu", health=3, why="there is no worker")), 0, PLAIN)
    assert lines[0] == "nowhere: eu: there is no worker"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--count", "x"), "--count takes a number"),
        (("--cores", "0"), "--cores takes a number"),
        (("--policy", "best"), "strict, prefer, any"),
        (("--policy", "prefer"), "says nothing without --dc"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    assert_refused(hyperscale("route", *words, cwd=tmp_path), said)
