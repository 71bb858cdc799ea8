"""Words of a `loadtest` job: read here exactly as `hyperscale run` will read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from hyperscale.cli.app import app
from hyperscale.metrics.results import WorkflowResult
from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.worker.executors.loadtest import (
    PLAIN,
    VALUED,
    Requests,
    checked_words,
    file_beneath,
)
from hyperscale.ui.ci import progress
from hyperscale.ui.window import RateWindow
from tests.unit.ui.sample import checkout, search


def test_each_flag_takes_a_value_or_not_as_run_says() -> None:
    """Were a value taken for a flag, or a flag for a value, the rest would be judged wrongly."""
    group: Any = typer.main.get_command(app)
    options = {
        name: parameter
        for parameter in group.commands["run"].params
        if parameter.param_type_name == "option"
        for name in parameter.opts
    }
    assert {name for name in VALUED if options[name].is_flag} == set()
    assert {name for name in PLAIN if not options[name].is_flag} == set()


@pytest.mark.parametrize(
    "words",
    [
        ["-u", "5", "--duration=3s", "-d3s", "--threshold", "p(95)<500", "-q"],
        ["--tag", "--csv", "-e", "SHOP=1"],
        ["--insecure-skip-tls-verify", "--host", "https://shop.example.com"],
    ],
)
def test_load_judgement_tags_and_variables_pass(tmp_path: Path, words: list[str]) -> None:
    assert checked_words(tmp_path, words)


@pytest.mark.parametrize(
    "words",
    [
        *(["--csv", "x"], ["--csv=x"], ["-o", "x"], ["-ox"], ["--json", "x"], ["--html", "x"]),
        *(["--junit", "x"], ["--out=x"], ["--summary-export", "x"], ["-c", "x"], ["--config=x"]),
        *(["--cluster", "h"], ["--certs", "d"], ["--detach"], ["--debug"], ["--ui", "full"]),
        *(["--"], ["other.py"], ["/etc/other.py"], [""], ["-"], ["-u"], ["-qo", "x"], ["-qv"]),
        *(["-e", "PYTHONPATH=/tmp"], ["--env=LD_PRELOAD=x"], ["-ePYTHONWARNINGS=x"]),
        *(["-e", "HYPERSCALE_CSV=x"], ["-e", "SSLKEYLOGFILE=x"], ["-e", " PYTHONPATH=x"]),
        ["--env-file", "/etc/passwd"],
    ],
)
def test_files_places_and_code_do_not(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(InvalidJob):
        checked_words(tmp_path, words)


def test_a_file_lies_beneath_the_directory_also_through_links(tmp_path: Path) -> None:
    tests, outside = tmp_path / "tests", tmp_path / "outside.py"
    (tests / "shop").mkdir(parents=True)
    (tests / "shop" / "cart.py").touch()
    (tests / "cart.py").symlink_to(tests / "shop" / "cart.py")
    outside.touch()
    (tests / "out.py").symlink_to(outside)
    (tests / "loop.py").symlink_to(tests / "loop.py")
    real = tests / "shop" / "cart.py"
    assert file_beneath(tests, "shop/cart.py") == real
    assert file_beneath(tests, str(real)) == real
    assert file_beneath(tests, "cart.py") == real
    for name in ("out.py", "../outside.py", str(outside), "loop.py", "none.py", "shop", "a\0b"):
        with pytest.raises(InvalidJob, match="no file beneath"):
            file_beneath(tests, name)


def test_a_run_moves_while_it_sends_requests() -> None:
    told: list[bool] = []
    run = Requests(lambda: told.append(True))

    def line(workflow: WorkflowResult) -> bytes:
        return f"00:05  {progress(workflow, RateWindow())}\n".encode()

    shop, more, other = line(checkout()), line(checkout(scale=2.0)), line(search())
    for written, moved in (
        (b"00:00  Checkout  started\n", True),
        (shop, True),
        (shop, False),
        (more + other, True),
        (more + other, False),
        (other + b"00:06  Checkout  stopping\n", True),
    ):
        told.clear()
        run.written(written)
        assert bool(told) is moved, written
