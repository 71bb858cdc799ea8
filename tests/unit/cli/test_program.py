"""The program around its commands: settings complete, nothing heavy at the door, errors shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from hyperscale.cli import app as program
from hyperscale.config.run import NAMES
from hyperscale.errors import ExitCode

HEAVY = {"asyncio", "numpy", "pydantic", "rich", "ssl", "uvloop"}
# None of it is on the way from enter to the first request.
NOT_FOR_A_RUN = {
    *("cryptography", "fastapi", "numpy", "prometheus_client", "psutil", "pydantic", "redis"),
    *("rich", "structlog", "uvicorn", "uvloop", "zstandard"),
    *("hyperscale.cli.jobs", "hyperscale.cli.scheduler", "hyperscale.ledger", "hyperscale.nodes"),
    *("hyperscale.scheduler", "hyperscale.sim", "hyperscale.ui.html", "hyperscale.wire"),
}
NOT_FOR_A_GENERATOR = {
    *NOT_FOR_A_RUN - {"numpy"},
    *(
        "hyperscale.cli",
        "hyperscale.cluster",
        "hyperscale.engine.run",
        "hyperscale.engine.generators",
    ),
    *("hyperscale.metrics.aggregate", "hyperscale.reporting", "hyperscale.ui", "typer"),
}


def command(name: str) -> Any:
    group: Any = typer.main.get_command(program.app)
    return group.commands[name]


def test_every_flag_of_run_is_a_setting_and_every_setting_a_flag() -> None:
    flags = {param.name for param in command("run").params}
    # `file` is the argument, `config` is about the settings, not among them; those of
    # a URL stand for what a test file says
    others = {"test", "config", "method", "header", "data", "show_settings"}
    # A secret has no flag: everybody on the machine can read command lines.
    assert flags - others == set(NAMES) - {"file", "web_token"}


def test_flags_people_bring_along_are_understood() -> None:
    spellings = {opt for param in command("run").params for opt in param.opts}
    assert spellings >= {
        "-u", "--users", "-d", "--run-time", "-i", "-s", "--stage", "--host", "--headless",
        "--processes", "--summary-export", "--summary-trend-stats", "--no-color", "-e", "-o",
        "-q", "-v", "-c", "--tag", "--threshold", "--no-thresholds", "--http-debug",
        "--insecure-skip-tls-verify", "--once", "--seed", "--debug", "--rate", "-w",
    }  # fmt: skip


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["run", "--help"], ["run", "-u", "x"]]
)
def test_nothing_heavy_is_imported_before_it_is_needed(words: list[str]) -> None:
    assert not loaded(f"from hyperscale.cli.app import execute; execute({words!r})") & HEAVY


def test_a_run_loads_nothing_of_other_commands(tmp_path: Path) -> None:
    words = ["run", str(tmp_path / "broken.py")]
    (tmp_path / "broken.py").write_text("import hyperscale.testing\nraise ValueError")
    modules = loaded(f"from hyperscale.cli.app import execute; execute({words!r})")
    assert {"hyperscale.engine.run", "hyperscale.testing"} <= modules
    assert not modules & NOT_FOR_A_RUN


def test_a_generator_loads_nothing_of_its_parent() -> None:
    modules = loaded("import hyperscale.engine.generator")
    assert "hyperscale.clients" in modules
    assert not modules & NOT_FOR_A_GENERATOR


def loaded(code: str) -> set[str]:
    """The modules of a process that has run this."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print('loaded', *sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(ended.stdout.rsplit("loaded", 1)[1].split())


def test_an_optional_value_is_filled_in_before_the_end_of_options() -> None:
    words = ["run", "t.py", "--http-debug", "--http-debug=full", "--", "--http-debug"]
    assert program._expand(words) == [
        "run", "t.py", "--http-debug=headers", "--http-debug=full", "--", "--http-debug",
    ]  # fmt: skip


def test_a_fault_of_our_own_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(program, "app", broken)
    assert program.execute(["run"]) == ExitCode.FAILED
    error = capsys.readouterr().err
    assert error.startswith("error: hyperscale itself failed with ZeroDivisionError: oh\n")
    assert "Traceback" not in error
    assert program.execute(["run", "--debug"]) == ExitCode.FAILED
    assert "Traceback" in capsys.readouterr().err
