"""Which generator processes `run` starts before its options are read, and with what environment."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hyperscale.cli import early


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "usable_cores", lambda: 2)
    monkeypatch.delenv("HYPERSCALE_WORKERS", raising=False)


class Asked:
    """Instead of processes: how many, and the environment."""

    def __init__(self, count: int, environ: Mapping[str, str]) -> None:
        self.count = count
        self.environ = environ


def asked(monkeypatch: pytest.MonkeyPatch, *words: str) -> Asked | None:
    monkeypatch.setattr(early, "EarlyChildren", Asked)
    return early.start_generators(words)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ([], 2),
        (["test.py", "-u", "50"], 2),
        (["test.py", "-w", "1"], 1),
        (["test.py", "-w3"], 3),
        (["test.py", "--workers=1"], 1),
        (["test.py", "--processes", "-1"], 2),
        (["test.py", "--once"], 1),
        (["test.py", "--users", "1"], 1),
        (["test.py", "-u1", "-w", "3"], 1),
    ],
)
def test_as_many_as_the_run_will_want(
    words: list[str], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = asked(monkeypatch, *words)
    assert started is not None
    assert started.count == count


@pytest.mark.parametrize(
    "words",
    [["--help"], ["t.py", "--cluster", "m1"], ["t.py", "--env-file=f"], ["-w", "x"], ["-w", "900"]],
)
def test_none_where_it_cannot_be_told(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, *words) is None


def test_they_have_the_variables_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALREADY", "there")
    started = asked(monkeypatch, "t.py", "-e", "A=1", "--env=B=x=y", "-eC=", "--no-color")
    assert started is not None
    assert {"ALREADY": "there", "A": "1", "B": "x=y", "C": "", "NO_COLOR": "1"}.items() <= (
        started.environ.items()
    )
