"""Options lent from one command to another."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from hyperscale.cli import app as program
from hyperscale.cli.shared_options import options_of


def lender(
    ctx: typer.Context,
    word: Annotated[str, typer.Argument()],
    one: Annotated[str, typer.Option("--one")] = "1",
    two: Annotated[str, typer.Option("--two")] = "2",
) -> int:
    return 0


def options(name: str) -> dict[str, Any]:
    group: Any = typer.main.get_command(program.app)
    return {param.name: param for param in group.commands[name].params}


def test_what_is_written_down_wins_and_what_is_left_out_stays_out() -> None:
    @options_of(lender, without=("two",))
    def borrower(one: Annotated[str, typer.Option("--uno")] = "x", **given: Any) -> int:
        return len(given)

    parameters = inspect.signature(borrower).parameters
    assert list(parameters) == ["ctx", "word", "one"]
    assert parameters["one"].default == "x"
    assert borrower(word="w", ctx=None) == 2


def test_only_some_can_be_lent_and_twice() -> None:
    @options_of(lender, only=("two",))
    @options_of(lender, only=("one",))
    def borrower(**given: Any) -> int:
        return 0

    assert list(inspect.signature(borrower).parameters) == ["one", "two"]


def test_submit_takes_what_run_takes_but_for_what_is_beside_the_load() -> None:
    run, submit = options("run"), options("submit")
    assert set(run) - set(submit) == {"workers", "once", "http_debug"}
    assert submit["cluster"].opts[0] == "--manager"
    assert run["cluster"].opts[0] == "--cluster"


def test_nodes_take_what_a_bare_member_takes() -> None:
    assert set(options("node")) - set(options("manager")) == {"role"}
    assert set(options("node")) - set(options("worker")) == {
        "role",
        "voters",
        "manager_secret_file",
        "previous_manager_secret_file",
    }
    assert {"cores", "memory_mb"} <= set(options("worker"))


def test_every_command_about_a_cluster_says_which_in_the_same_words() -> None:
    which = {"manager", "certs", "name", "cluster_id", "environment", "config", "debug"}
    for name in ("jobs", "status", "logs", "workers", "cancel", "pause", "resume", "scale",
                 "attach", "results"):  # fmt: skip
        assert which <= set(options(name)), name
