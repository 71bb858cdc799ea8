"""What can be asked of a run on the page, and what is refused in a sentence."""

from __future__ import annotations

import pytest

from hyperscale.errors import BadInput
from hyperscale.ui.web.steering import Command, decode, steer
from tests.unit.ui.fake_run import FakeRun
from tests.unit.ui.sample import sample_results


def run_with(open_model: bool) -> tuple[FakeRun, str]:
    results = sample_results("running")
    results.workflows = results.workflows[:1]
    workflow = results.workflows[0]
    workflow.state, workflow.open_model, workflow.vus = "running", open_model, 40
    return FakeRun(results), workflow.name


@pytest.mark.parametrize("action", ["pause", "resume", "stop", "kill"])
def test_levers_are_pulled(action: str) -> None:
    run, _ = run_with(open_model=False)
    assert steer(run, decode(b'{"action": "%s"}' % action.encode()))
    assert run.calls == [action]


def test_users_are_set_to_a_number() -> None:
    run, name = run_with(open_model=False)
    steer(run, Command("scale", vus=55))
    steer(run, Command("scale", name, vus=55))  # as it is: nothing to do
    assert run.calls == [f"scale {name} +15"]


def test_users_are_added_and_removed_down_to_one() -> None:
    run, name = run_with(open_model=False)
    assert "adding 4" in steer(run, Command("scale", delta=4))
    assert "removing 43" in steer(run, Command("scale", delta=-100))
    with pytest.raises(BadInput, match="1 user is the least"):
        steer(run, Command("scale", delta=-1))
    assert run.calls == [f"scale {name} +4", f"scale {name} -43"]


def test_a_rate_is_changed_by_percent() -> None:
    run, name = run_with(open_model=True)
    assert "90 %" in steer(run, Command("rate", name, percent=90))
    assert run.calls == [f"rate {name} 0.9"]


@pytest.mark.parametrize(
    ("open_model", "command", "sentence"),
    [
        (False, Command("scale", vus=0), "users are a number"),
        (False, Command("scale", vus=10**9), "users are a number"),
        (False, Command("rate", percent=110), "makes its load by users"),
        (True, Command("scale", vus=5), "makes its load by arrivals"),
        (True, Command("rate", percent=0), "a rate is changed"),
        (True, Command("rate", "nobody", percent=50), "nobody is not under way"),
    ],
)
def test_what_makes_no_sense_is_refused(open_model: bool, command: Command, sentence: str) -> None:
    run, _ = run_with(open_model)
    with pytest.raises(BadInput, match=sentence):
        steer(run, command)
    assert run.calls == []


def test_of_several_workflows_one_has_to_be_named() -> None:
    results = sample_results("running")
    for workflow in results.workflows:
        workflow.state = "running"
    with pytest.raises(BadInput, match="say which workflow"):
        steer(FakeRun(results), Command("scale", vus=3))


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"action": "explode"}', b"\xff", b"null"])
def test_bytes_that_are_no_command(body: bytes) -> None:
    with pytest.raises(BadInput, match="cannot be asked"):
        decode(body)
