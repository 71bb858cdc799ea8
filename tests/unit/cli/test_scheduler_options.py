"""`schedule`, `queue` and `scheduler` say the same things in the same words."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import typer

from hyperscale.cli.app import app, execute
from hyperscale.cli.scheduler_client import which_scheduler
from hyperscale.cli.scheduler_work import work_of
from hyperscale.errors import BadInput, ExitCode


def options(name: str) -> set[str]:
    group: Any = typer.main.get_command(app)
    return {param.name for param in group.commands[name].params}


def lent(lender: Any) -> set[str]:
    return set(inspect.signature(lender).parameters) - {"here"}


def test_what_to_run_is_said_alike() -> None:
    assert lent(work_of) <= options("queue") & options("schedule")


def test_which_scheduler_is_said_alike() -> None:
    assert lent(which_scheduler) <= options("queue") & options("schedule") & options("scheduler")


def test_a_file_of_another_machine_is_not_looked_for_here() -> None:
    assert work_of(False, loadtest="there.py")["payload"] == {"file": "there.py"}
    with pytest.raises(BadInput, match=r"there is no test file there\.py"):
        work_of(True, loadtest="there.py")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"http": "http://x/", "python": "a:b"},
        {"http": "http://x/", "arg": ["--vus"]},
        {"http": "http://x/", "priority": "urgent"},
        {"http": "http://x/", "timeout": "soon"},
        {"http": "http://x/", "retries": "-1"},
        {"http": "http://x/", "tag": ["nothing"]},
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        work_of(True, **given)


def test_a_priority_has_a_name_or_a_number() -> None:
    assert work_of(True, http="http://x/", priority="high")["priority"] == 100
    assert work_of(True, http="http://x/", priority="7")["priority"] == 7


def test_who_types_the_old_name_is_told_both_new_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["job", "list"]) == ExitCode.BAD_INPUT
    told = capsys.readouterr().err
    assert "hyperscale queue" in told
    assert "hyperscale jobs" in told


def test_which_scheduler_is_also_said_by_environment_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hyperscale.toml").write_text('[scheduler]\nurl = "http://127.0.0.1:7"\nslots = 2\n')
    monkeypatch.setenv("HYPERSCALE_SCHEDULER_TOKEN", "known to us")

    assert execute(["queue", "list", "--show-settings", "--plain-http"]) == ExitCode.PASSED
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["scheduler.plain_http", "yes", "--plain-http"],
        ["scheduler.url", "http://127.0.0.1:7", "hyperscale.toml:", "[scheduler]", "url"],
        ["scheduler.token", "***", "HYPERSCALE_SCHEDULER_TOKEN"],
        ["scheduler.ca", "-", "default"],
    ]


@pytest.mark.parametrize("command", [["queue", "list"], ["schedule", "list"], ["scheduler", "go"]])
def test_who_asks_a_scheduler_is_told_of_a_slip(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPERSCALE_SCHEDULER_ULR", "http://127.0.0.1:7")

    assert execute(command) == ExitCode.BAD_INPUT
    assert "did you mean 'HYPERSCALE_SCHEDULER_URL'?" in capsys.readouterr().err
