"""`hyperscale cron` as it is typed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import typer

from hyperscale.cli.command import CompactCommand
from hyperscale.cli.cron import cron
from hyperscale.errors import BadInput, ExitCode
from hyperscale.scheduler.schedules.cron import CronError

GAP = ["30 2 * * *", "--tz", "America/New_York", "--from", "2024-03-09T12:00Z", "-n", "2"]


def run(*words: str) -> int:
    app = typer.Typer()
    app.command(cls=CompactCommand)(cron)
    return int(app(args=list(words), standalone_mode=False))


def data(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_next_runs_with_words_offsets_and_the_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*GAP) == ExitCode.PASSED
    assert capsys.readouterr().out == (
        "At 02:30 every day (America/New_York time)\n\n"
        "  clocks go forward 1 h: Sun 2024-03-10 02:00 → 03:00\n"
        "  Sun 2024-03-10 03:30 -04:00 EDT    2024-03-10 07:30Z  moved: 02:30 does not exist\n"
        "  Mon 2024-03-11 02:30 -04:00 EDT    2024-03-11 06:30Z\n"
    )


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*GAP, "--json") == ExitCode.PASSED
    shown = data(capsys)
    assert shown["words"] == "at 02:30 every day"
    assert shown["zone"] == "America/New_York"
    assert shown["from"] == "2024-03-09T12:00:00Z"
    assert shown["runs"][0] == {
        "utc": "2024-03-10T07:30:00Z",
        "local": "2024-03-10T03:30:00-04:00",
        "note": "moved: 02:30 does not exist",
    }


def test_without_from_the_runs_are_ahead(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("* * * * *", "--json") == ExitCode.PASSED
    shown = data(capsys)
    assert len(shown["runs"]) == 10
    assert shown["from"] < shown["runs"][0]["utc"]


def test_a_time_without_offset_is_one_of_the_zone(capsys: pytest.CaptureFixture[str]) -> None:
    run("0 9 * * * Asia/Tokyo", "--from", "2024-01-01T08:59", "-n", "1", "--json")
    assert data(capsys)["runs"][0]["utc"] == "2024-01-01T00:00:00Z"


def test_warnings_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    run("*/7 * * * * *", "--from", "2024-01-01")
    out = capsys.readouterr().out
    assert "warning: */7 starts again with each minute" in out
    assert "00:00:07" in out


def test_an_expression_that_cannot_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CronError, match="there is no minute 75"):
        run("75 * * * *")
    assert run("75 * * * *", "--json") == ExitCode.BAD_INPUT
    shown = data(capsys)
    assert not shown["good"]
    (error,) = shown["errors"]
    assert (error["kind"], error["field"], error["value"]) == ("syntax", "minute", "75")
    assert error["position"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "there is no expression"),
        (["*/5", "*", "*", "*", "*"], "one argument"),
        (["* * * * *", "--tz", "PST"], "there is no time zone 'PST'"),
        (["0 9 * * * UTC", "--tz", "Asia/Tokyo"], "names UTC and --tz names Asia/Tokyo"),
        (["* * * * *", "--from", "tomorrow"], "--from takes an instant"),
        (["* * * * *", "--from", "0001-01-01T00:00+14:00"], "--from takes an instant"),
        (["* * * * *", "-n", "0"], "--count takes a number"),
        (["* * * * *", "--check", "x"], "an expression and a file"),
        (["--check", "no/such/file"], "cannot be read"),
    ],
)
def test_bad_usage_is_one_sentence(words: list[str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        run(*words)


def test_far_ends_show_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("* * * * *", "--from", "9999-06-01", "--tz", "Europe/Berlin") == ExitCode.PASSED
    assert "no run within" in capsys.readouterr().out
    assert run("0 0 * * *", "--from", "0001-01-02", "--tz", "Europe/Berlin") == ExitCode.PASSED


LINES = """\
# nightly
0 2 * * *            # after the backup
\t
*/7 * * * *
75 9 32 * *
0 0 30 2 *
0 9 * * * Europe/Berlin\r
"""


def test_a_file_is_checked_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "expressions.txt"
    file.write_bytes(LINES.encode())
    assert run("--check", str(file)) == ExitCode.BAD_INPUT
    lines = capsys.readouterr().out.splitlines()
    assert [line.removeprefix(str(file)).split(": ")[:2] for line in lines[:-1]] == [
        [":4:1", "warning"],
        [":5:1", "error"],
        [":5:6", "error"],
        [":6:5", "error"],
    ]
    assert lines[-1] == "5 checked: 2 with errors, 1 with warnings"
    assert run("--check", str(file), "--json") == ExitCode.BAD_INPUT
    shown = data(capsys)["expressions"]
    assert [(one["line"], one["good"]) for one in shown] == [
        (2, True), (4, True), (5, False), (6, False), (7, True),
    ]  # fmt: skip


def test_good_lines_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("0 9 * * MON\n@daily"))
    assert run("--check", "-") == ExitCode.PASSED
    assert capsys.readouterr().out == "2 checked: 0 with errors, 0 with warnings\n"
