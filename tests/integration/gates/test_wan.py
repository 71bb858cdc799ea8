"""Datacenters that are far from each other: every byte between them takes its time, or is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperscale.errors import ExitCode
from tests.integration.cli.program import assert_refused, hyperscale, write_workflow
from tests.integration.conftest import Stats
from tests.integration.gates.test_gates import World, by_datacenter, world

LINKS = "eu-us=80ms,eu-ap=160ms"
NAMES = ("eu", "us", "ap")  # g1 is in eu, g2 in us, g3 in ap
PER_DATACENTER = 200


@pytest.fixture(scope="module")
def wan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("wan"), "--wan", LINKS) as made:
        yield made


def set_links(wan: World, *more: str) -> None:
    before = wan.dev.said.count("wan links:")
    (wan.folder / "data" / "wan").write_text("\n".join((LINKS, *more)))
    wan.dev.wait_until(lambda: wan.dev.said.count("wan links:") > before, "other links")


def test_gates_measure_the_distance(wan: World) -> None:
    assert "ap-eu 160ms, ap-us 240ms, eu-us 80ms" in wan.dev.said

    def measured(gate: str) -> float:
        words = ("members", f"127.0.0.1:{wan.port}", "--json")
        rows = json.loads(hyperscale(*words, cwd=wan.folder, **wan.env).out)["rows"]
        return sum(row["rtt_s"] or 0 for row in rows if row["node_id"] == gate)

    # It is estimated from many round trips, so it comes near.
    wan.dev.wait_until(lambda: measured("g2") > 0.06, "the distance of us")
    wan.dev.wait_until(lambda: measured("g3") > 0.12, "the distance of ap")


def test_a_datacenter_that_is_cut_off_with_the_owner_is_named_and_the_rest_runs_on(
    wan: World, target: str, stats: Stats
) -> None:
    """The gate that owned the job is in a minority then, and lets go of it."""
    file = write_workflow(wan.folder, f"{target}/")
    words = (file, "--rate", "20/s", "-d", "10s", "-o", "out.json")
    with wan.running(*words) as run:
        run.wait_until(lambda: stats()["requests"] > 30, "load")
        owner = wan.owner()
        lost = NAMES[int(owner[1:]) - 1]
        set_links(wan, f"{lost}=cut")
        ended = run.ended()
    assert ended.code == ExitCode.LOAD_LOST, ended
    found = by_datacenter(wan.results())
    assert found.pop(lost)[0] == "lost"
    assert set(found.values()) == {("completed", PER_DATACENTER)}
    job = re.findall(r"job (\w+) accepted", run.said)[0]
    assert owner in [gate for _, gate in wan.logged("owns job no more")]

    set_links(wan)
    wan.dev.wait_until(lambda: wan.logged("job withdrawn"), "that it is told that it is over")
    assert "lost" in wan.ask("status", job, gate=int(owner[1:])).out


def test_streams_that_are_cut_one_way_while_datagrams_pass_end_nothing(
    wan: World, target: str, stats: Stats
) -> None:
    file = write_workflow(wan.folder, f"{target}/")
    with wan.running(file, "--rate", "20/s", "-d", "5s", "-o", "out.json") as run:
        run.wait_until(lambda: stats()["requests"] > 30, "load")
        at = int(wan.owner()[1:]) - 1
        set_links(wan, f"{NAMES[at]}>{NAMES[at - 1]}/tcp=cut")
        run.wait_until(lambda: stats()["requests"] > 150, "more load")
        set_links(wan)
        ended = run.ended()
    assert ended.code == ExitCode.PASSED, ended
    assert set(by_datacenter(wan.results()).values()) == {("completed", PER_DATACENTER // 2)}


def test_what_cannot_be_meant_is_said(tmp_path: Path) -> None:
    dev = ("dev", "--datacenters", 3)
    assert_refused(hyperscale("dev", "--wan", "80ms", cwd=tmp_path), "there is one", code=2)
    assert_refused(hyperscale(*dev, "--wan", "eu-us=80ms", cwd=tmp_path), "says 3", code=2)
