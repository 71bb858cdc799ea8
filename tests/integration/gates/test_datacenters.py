"""What gates know of datacenters and decide by it, with real processes and real distances."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from hyperscale.nodes.gate.routing import decided_again
from tests.integration.cli.program import assert_refused, hyperscale, write_workflow
from tests.integration.cluster.fleet import Fleet, until
from tests.integration.conftest import Stats
from tests.integration.gates import older_release
from tests.integration.gates.test_gates import World, by_datacenter, world

LINKS = "eu-us=40ms,eu-ap=80ms"  # us and ap are 120 ms apart
GATES = {"eu": 1, "us": 2, "ap": 3}


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("far"), "--wan", LINKS) as made:
        yield made


def set_links(far: World, *more: str) -> None:
    before = far.dev.said.count("wan links:")
    (far.folder / "data" / "wan").write_text("\n".join((LINKS, *more)))
    far.dev.wait_until(lambda: far.dev.said.count("wan links:") > before, "other links")


def seen(far: World, gate: int = 1) -> dict[str, dict[str, Any]]:
    """Datacenters by name, as a gate sees them."""
    told = json.loads(far.ask("datacenters", "--json", gate=gate).out)
    return {one["name"]: one for one in told["datacenters"]}


def logged(far: World, event: str) -> list[dict[str, Any]]:
    logs = [log.read_text().splitlines() for log in (far.folder / "data").glob("g*.log")]
    return [json.loads(line) for lines in logs for line in lines if f'"event":"{event}"' in line]


def test_a_gate_tells_how_its_datacenters_are(far: World) -> None:
    def all_healthy() -> bool:
        return {one["state"] for one in seen(far).values()} == {"healthy"}

    far.dev.wait_until(all_healthy, "that all are healthy")
    found = seen(far)
    assert list(found) == ["eu", "us", "ap"]
    for name, one in found.items():
        assert one["leader"] == f"{name}-m1"
        told = one["facts"]
        assert (told["cores"], told["cores_free"], told["workers"]) == (1, 1, 1)
    assert found["eu"]["rtt_s"] < found["us"]["rtt_s"] < found["ap"]["rtt_s"]
    far.dev.wait_until(
        lambda: seen(far)["us"]["other_gates"] == ["g2", "g3"], "what other gates reach"
    )
    table = far.ask("datacenters")
    assert "3 datacenters, 3 healthy, as g1 sees" in table.out
    assert "eu-m1" in table.out
    manager = far.ask_manager("eu-m1", "datacenters")
    assert_refused(manager, "does not answer it", code=1)
    assert "name the address of a gate" in manager.err


def test_each_gate_would_choose_what_is_near_to_it(far: World) -> None:
    def near(name: str) -> bool:
        told = json.loads(far.ask("route", "--count", 1, "--json", gate=GATES[name]).out)
        return bool(told["by_distance"] and told["chosen"] == [name])

    for name in GATES:
        far.dev.wait_until(lambda name=name: near(name), f"that {name} is near to its gate")  # type: ignore[misc]
    assert far.ask("route", "--count", 1).out == "eu\n"
    explained = far.ask("route", "--explain", "--count", 1, "--without", "eu", gate=1)
    assert "g1 would run it in us; next would be ap" in explained.out
    assert "it was excluded" in explained.out
    preferred = far.ask("route", "--dc", "ap", "--policy", "prefer", gate=1)
    assert preferred.out == "ap\n"
    too_many = far.ask("route", "--count", 9)
    assert_refused(too_many, "9 datacenters are wanted, and there are 3 of use", code=1)


def test_every_decision_follows_from_its_line_of_the_log(
    far: World, target: str, stats: Stats
) -> None:
    file = write_workflow(far.folder, f"{target}/")
    for words in ((), ("--dc", "us"), ("--dc-count", 1)):
        ended = far.ask("run", file, "-i", 10, *words)
        assert ended.code == ExitCode.PASSED, ended
    assert stats()["requests"] == 50
    lines = logged(far, "routing decision")
    assert len(lines) >= 3
    for line in lines:
        again = decided_again(line)
        assert list(again.chosen) == line["chosen"]
        assert list(again.fallback) == line["fallback"]
        scores = {one.name: round(one.score, 6) for one in again.scored if one.rank}
        assert scores == line["scores"]
    assert {tuple(sorted(line["chosen"])) for line in lines} >= {("ap", "eu", "us"), ("us",)}
    counted = [line for line in lines if "named" not in line["snapshot"]["wish"]]
    assert [len(line["chosen"]) for line in counted if line["snapshot"]["wish"].get("count")] == [1]


def test_a_gate_that_cannot_reach_a_datacenter_leaves_the_job_to_one_that_can(
    far: World, target: str, stats: Stats
) -> None:
    """The line between two datacenters is cut; the third one's gate reaches both."""
    file = write_workflow(far.folder, f"{target}/")
    with far.running(file, "--rate", "10/s", "-d", "30s", "-o", "out.json") as run:
        run.wait_until(lambda: stats()["requests"] > 30, "load")
        owner = far.owner()
        home = next(name for name, gate in GATES.items() if owner == f"g{gate}")
        other = "us" if home == "eu" else "eu"
        set_links(far, f"{home}-{other}=cut")
        ended = run.ended()
    set_links(far)
    assert ended.code == ExitCode.PASSED, ended
    assert set(by_datacenter(far.results()).values()) == {("completed", 300)}
    assert not logged(far, "datacenter lost")
    verdicts = {one["verdict"] for one in logged(far, "datacenter silent, not given up")}
    assert "hand over" in verdicts


def test_who_has_no_worker_is_left_out_and_the_results_say_so(
    far: World, target: str, stats: Stats
) -> None:
    far.kill("ap-w1")
    far.dev.wait_until(lambda: seen(far)["ap"]["state"] == "unhealthy", "that ap is unhealthy")
    file = write_workflow(far.folder, f"{target}/")
    ended = far.ask("run", file, "-i", 10, "-o", "out.json")
    assert ended.code == ExitCode.PASSED, ended
    assert set(by_datacenter(far.results())) == {"eu", "us"}
    assert stats()["requests"] == 20
    (warning,) = far.results()["warnings"]
    assert warning.startswith("datacenter ap was left out: ")


def test_a_gate_is_no_member_of_a_datacenter(tmp_path: Path) -> None:
    """Though it was given a manager as its seed, and has the same secret and authority."""
    with Fleet(tmp_path, tls=True) as fleet:
        gate = fleet.add_gate("g1")
        fleet.start()
        certs = ("--certs", str(fleet.certs))

        def members(port: int) -> set[str]:
            told = hyperscale("members", f"127.0.0.1:{port}", "--json", *certs, cwd=tmp_path)
            return {row["node_id"] for row in json.loads(told.out)["rows"]} if told.out else set()

        def refused() -> list[str]:
            return [one.get("reason", "") for one in gate.logged("refused")]

        until(lambda: any("no member beside" in why for why in refused()), "that it is refused")
        until(lambda: members(gate.port) == {"g1"}, "that it is alone")
        assert members(fleet["m1"].port) == {"m1", "w1"}
        told = hyperscale(
            "datacenters", "--json", "--manager", f"127.0.0.1:{gate.port}", *certs, cwd=tmp_path
        )
        assert told.code == ExitCode.PASSED, told


def test_a_manager_of_an_older_release_is_reached_and_runs_what_is_sent(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    """It knows no probes: nothing is known of its load, which is no reason against it."""
    file = write_workflow(tmp_path, f"{target}/")
    with Fleet(tmp_path) as fleet:
        manager = fleet["m1"]
        manager.program = ("-m", "tests.integration.gates.older_release")
        manager.env["PYTHONPATH"] = os.pathsep.join(path or "." for path in sys.path)
        gate = fleet.add_gate("g1")
        fleet.start()
        where = ("--manager", f"127.0.0.1:{gate.port}")

        def known() -> dict[str, Any]:
            told = hyperscale("datacenters", "--json", *where, cwd=tmp_path)
            if told.code != ExitCode.PASSED:
                return {}
            (one,) = json.loads(told.out)["datacenters"]
            return one if one["reach"] == "reachable" else {}

        found = until(known, "that the gate reaches it")
        assert found["version"] == older_release.VERSION
        assert (found["state"], found["facts"]) == ("degraded", None)
        assert "older version" in found["why"]
        ended = hyperscale("run", file, "-i", 12, *where, cwd=tmp_path)
        assert ended.code == ExitCode.PASSED, ended
        assert stats()["requests"] == 12
