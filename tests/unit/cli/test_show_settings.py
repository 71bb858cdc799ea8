"""`--show-settings`: what is in force, and who set it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.cli.app import execute

TEST = """
from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse

class Shop(Workflow):
    vus = 3

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("http://127.0.0.1:9/")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(TEST)
    (tmp_path / "hyperscale.toml").write_text(
        "[run]\nvus = 9\nduration = '2s'\n[cluster]\nmanager = '10.0.0.1'\n[scheduler]\nslots = 2\n"
    )
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, list[str]]:
    assert execute([*words, "--show-settings"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    return {line.split()[0]: line.split()[1:] for line in lines}


@pytest.mark.usefixtures("folder")
def test_every_place_of_a_run_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYPERSCALE_RPS", "7")
    rows = shown(capsys, "run", "shop.py", "--seed", "1")

    assert rows["run.seed"] == ["1", "--seed"]
    assert rows["run.rps"] == ["7", "HYPERSCALE_RPS"]
    assert rows["run.vus"] == ["3", "(Shop)", "test", "file"]
    assert rows["run.duration"] == ["2s", "hyperscale.toml:", "[run]", "duration"]
    assert rows["run.host"] == ["-", "default"]
    assert "cluster.manager" not in rows
    assert shown(capsys, "run", "shop.py", "-u", "5")["run.vus"] == ["5", "--vus"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "name", "row"),
    [
        (["submit", "shop.py", "--certs", "c"], "cluster.certs", ["c", "--certs"]),
        (["jobs", "--name", "me"], "cluster.name", ["me", "--name"]),
        (["scheduler", "--no-worker"], "scheduler.worker", ["no", "--no-worker"]),
        (["scheduler"], "scheduler.slots", ["2", "hyperscale.toml:", "[scheduler]", "slots"]),
    ],
)  # fmt: skip
def test_other_commands_tell_theirs(
    words: list[str], name: str, row: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, *words)[name] == row


@pytest.mark.usefixtures("folder")
def test_no_password_of_a_database_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    rows = shown(capsys, "run", "shop.py", "-o", "sqlite://a.db", "-o", "postgres://ada:pw@h/db")
    assert rows["run.out"] == ["sqlite://a.db,", "postgres://***@h/db", "--out"]
