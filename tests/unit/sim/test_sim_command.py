"""`hyperscale sim` on the command line."""

from __future__ import annotations

import json

import pytest

from hyperscale.cli.sim import sim
from hyperscale.errors import BadInput


def test_it_lists_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim() == 0
    assert "echo" in capsys.readouterr().out


def test_it_runs_seeds_and_sums_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("echo", seeds="1..3", jobs="1", nodes="2") == 0
    assert "echo: 3 seeds, 2 nodes, all passed" in capsys.readouterr().out


def test_a_failing_seed_is_printed_with_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("echo", seeds="4", nodes="2", planted_bug="wrong-answer") == 1
    out, err = capsys.readouterr()
    assert "hyperscale sim echo --seeds 4 --nodes 2 --bug wrong-answer --trace" in out
    assert "seed 4 failed: HonestEchoes" in err


def test_json_is_for_tools(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("echo", seeds="1..2", jobs="1", nodes="2", json=True) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["seeds"], data["failed"]) == (2, [])


def test_the_trace_tells_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("echo", seeds="4", nodes="2", planted_bug="wrong-answer", trace=True) == 1
    out = capsys.readouterr().out
    assert "n1          → n2: ping n1.1.1 (11 B, " in out
    assert "FAILED HonestEchoes" in out
    assert "seed 4 FAILED; faults: " in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"scenario": "nothing"}, "there is no scenario 'nothing'"),
        ({"seeds": "5..1"}, "--seeds takes one seed such as 7 or a range"),
        ({"seeds": "many"}, "--seeds takes"),
        ({"jobs": "0"}, "--jobs takes a whole number from 1 on, not '0'"),
        ({"nodes": "x"}, "--nodes takes a whole number"),
        ({"planted_bug": "tweety"}, "echo has no planted bug 'tweety'"),
        ({"trace": True}, "--trace tells one history, not 100"),
    ],
)
def test_mistakes_are_one_sentence(words: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        sim(**{"scenario": "echo", **words})  # type: ignore[arg-type]
