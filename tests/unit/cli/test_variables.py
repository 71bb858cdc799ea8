"""Where the variables of a test come from, and which of them are secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.cli.variables import read_env_file, variables
from hyperscale.config.run import Settings, said_by
from hyperscale.errors import BadInput
from hyperscale.workload import secrets


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", {})
    monkeypatch.setattr(secrets, "_patterns", [])


def env_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "test env"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_an_env_file_has_comments_quotes_and_values_with_anything(tmp_path: Path) -> None:
    file = env_file(
        tmp_path,
        '# comment\n\nA=one\nexport B = \'two words\'\nC="#3=x"\nD=p#ss=w"ord\nE=\n',
    )
    assert read_env_file(file) == {
        "A": "one",
        "B": "two words",
        "C": "#3=x",
        "D": 'p#ss=w"ord',
        "E": "",
    }


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_an_env_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(BadInput) as refused:
        read_env_file(env_file(tmp_path, "A=1", mode))
    assert f"mode {mode:o}" in refused.value.message
    assert refused.value.hint == f"chmod 600 '{tmp_path}/test env'"


def test_a_line_that_is_none_is_told_by_its_number_alone(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        read_env_file(env_file(tmp_path, "A=1\nTOPSECRET\n"))
    assert "line 2" in refused.value.message
    assert "TOPSECRET" not in refused.value.message + refused.value.hint
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_env_file(tmp_path / "none")


def test_stronger_places_win_and_a_secret_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE", "of the environment")
    file = env_file(tmp_path, "A=of the file\nB=of the file\n")
    said = Settings(env={"A": "of the flag"}, env_file=str(file), secret=["HERE"])
    filled = Settings(env={"A": "of the config", "HERE": "of the config", "C": "of the config"})
    found = variables(said, filled)
    assert found.values == {
        "A": "of the flag",
        "B": "of the file",
        "C": "of the config",
        "HERE": "of the environment",
    }
    assert found.secret == ["A", "B", "HERE"]
    assert secrets.mask("of the flag, of the file, of the environment, of the config") == (
        "***A***, ***B***, ***HERE***, of the config"
    )


@pytest.mark.parametrize("word", ["API_KEY=TOPSECRET", "TOPSECRET-1"])
def test_a_value_on_the_command_line_is_refused(word: str) -> None:
    with pytest.raises(BadInput) as refused:
        variables(Settings(secret=[word]), Settings())
    said = refused.value.message + refused.value.hint
    assert "history" in said
    assert "TOPSECRET" not in said


def test_a_secret_that_is_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("API_KEY", raising=False)
    with pytest.raises(BadInput, match="--secret API_KEY: there is no such variable"):
        variables(Settings(secret=["API_KEY"]), Settings())


def test_a_bad_variable_is_refused_without_its_value() -> None:
    with pytest.raises(BadInput) as refused:
        said_by({"env": ["TOPSECRET"]}, {})
    assert refused.value.message == "--env takes KEY=VALUE"
