"""`hyperscale cron`: what an expression means and when it is due next; files of them checked."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperscale.cli import flags, streams
from hyperscale.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from hyperscale.scheduler.schedules.cron import Cron, Parsed, Problem
    from hyperscale.scheduler.schedules.cron.coming_runs import Run

COUNT_DEFAULT = "10"
COUNT_MAX = 1_000
_COMMENT = re.compile(r"(^|[ \t])#.*")


def cron(
    expression: Annotated[
        list[str] | None, typer.Argument(metavar="EXPR", help='in quotes: "*/5 9-17 * * MON-FRI"')
    ] = None,
    tz: Annotated[
        str, typer.Option("--tz", metavar="ZONE", help="time zone, such as Europe/Berlin (UTC)")
    ] = "",
    start: Annotated[
        str, typer.Option("--from", metavar="INSTANT", help="show runs after this (now)")
    ] = "",
    count: Annotated[
        str, typer.Option("-n", "--count", metavar="N", help="how many runs (10)")
    ] = COUNT_DEFAULT,
    check: Annotated[
        str, typer.Option("--check", metavar="FILE", help="check a file, one a line; - is stdin")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    debug: flags.Debug = False,
) -> int:
    """Explain a cron expression and show its next runs."""
    words = expression or []
    if check and words:
        raise BadInput("there is an expression and a file to check", "give one of the two")
    if check:
        return _check_file(check, json)
    if not words:
        raise BadInput("there is no expression", 'give one in quotes, such as "*/5 * * * *"')
    if len(words) > 1:
        raise BadInput(
            "an expression is one argument", 'put it in quotes, or the shell reads each "*"'
        )
    return _show(words[0], tz, start, _count(count), json)


def _show(text: str, tz: str, start: str, count: int, json: bool) -> int:
    from hyperscale.scheduler.schedules.cron import CronError
    from hyperscale.scheduler.schedules.cron import check as checked
    from hyperscale.scheduler.schedules.cron.coming_runs import coming_runs

    parsed = checked(text)
    if parsed.cron is None:
        if json:
            streams.say(_pretty(_problems(parsed)))
            return int(ExitCode.BAD_INPUT)
        raise CronError(text, parsed.errors)
    zone = _zone(tz, parsed.cron)
    after = _instant(start, zone) if start else datetime.now(UTC)
    runs = coming_runs(parsed.cron, after, zone, count)
    if json:
        streams.say(_pretty(_as_data(parsed, parsed.cron, zone, after, runs)))
    else:
        streams.say(_shown(parsed, parsed.cron, zone, runs))
    return int(ExitCode.PASSED)


def _zone(tz: str, parsed: Cron) -> str:
    from hyperscale.scheduler.schedules.cron.zones import offsets_of

    own = parsed.fields.timezone
    if tz:
        offsets_of(tz)
    if tz and own and tz != own:
        raise BadInput(f"the expression names {own} and --tz names {tz}", "give one of the two")
    return tz or own or "UTC"


def _instant(text: str, zone: str) -> datetime:
    """A time without an offset is one of the zone."""
    from zoneinfo import ZoneInfo

    try:
        then = datetime.fromisoformat(text)
        return (then if then.tzinfo else then.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadInput(
            f"--from takes an instant, not {text!r}", "such as 2024-03-10T07:00Z or 2024-03-10"
        ) from error


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= COUNT_MAX:
        raise BadInput(f"--count takes a number from 1 to {COUNT_MAX}, not {text!r}")
    return int(text)


def _shown(parsed: Parsed, read: Cron, zone: str, runs: list[Run]) -> str:
    from hyperscale.scheduler.schedules.cron.words import in_words
    from hyperscale.ui.output import Output

    paint = Output(sys.stdout).paint()
    lines = [paint.strong(_sentence(in_words(read.fields)))]
    if read.fields.timezone is None:
        lines[0] += paint.faint(f" ({zone} time)")
    lines += [paint.warn("warning: ") + _advice(problem) for problem in parsed.warnings]
    lines.append("")
    for run in runs:
        if run.change:
            lines.append(paint.faint(f"  {run.change}"))
        lines.append(_row(run, "%H:%M" if read.fields.seconds is None else "%H:%M:%S", paint.warn))
    if not runs:
        from hyperscale.scheduler.schedules.cron.expression import HORIZON_YEARS

        lines.append(f"  no run within {HORIZON_YEARS} years")
    return "\n".join(lines)


def _row(run: Run, clock: str, marked: Callable[[str], str]) -> str:
    local = run.local
    offset = local.isoformat()[19:]
    row = (
        f"  {local.strftime(f'%a %Y-%m-%d {clock}')} {offset} {local.tzname() or '':<5} "
        f" {run.instant.strftime(f'%Y-%m-%d {clock}Z')}"
    )
    return f"{row}  {marked(run.note)}" if run.note else row


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _advice(problem: Problem) -> str:
    return f"{problem.message} ({problem.suggestion})" if problem.suggestion else problem.message


def _check_file(path: str, json: bool) -> int:
    from hyperscale.scheduler.schedules.cron import check as checked

    results = [(number, checked(text)) for number, text in _expressions(path)]
    wrong = sum(parsed.cron is None for _, parsed in results)
    if json:
        data = [{"line": number, **_problems(parsed)} for number, parsed in results]
        streams.say(_pretty({"file": path, "expressions": data}))
    else:
        shown = "<stdin>" if path == "-" else path
        for number, parsed in results:
            for kind, problems in (("error", parsed.errors), ("warning", parsed.warnings)):
                for problem in problems:
                    place = f"{shown}:{number}:{problem.position + 1}"
                    streams.say(f"{place}: {kind}: {_advice(problem)}")
        warned = sum(bool(parsed.warnings) for _, parsed in results)
        streams.say(f"{len(results)} checked: {wrong} with errors, {warned} with warnings")
    return int(ExitCode.BAD_INPUT if wrong else ExitCode.PASSED)


def _expressions(path: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1; comments and blank lines left out."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if expression := _COMMENT.sub("", line).rstrip():
            yield number, expression


def _problems(parsed: Parsed) -> dict[str, object]:
    return {
        "expression": parsed.text,
        "good": parsed.cron is not None,
        "errors": parsed.errors,
        "warnings": parsed.warnings,
    }


def _as_data(
    parsed: Parsed, read: Cron, zone: str, after: datetime, runs: list[Run]
) -> dict[str, object]:
    from hyperscale.scheduler.schedules.cron.words import in_words

    return {
        **_problems(parsed),
        "words": in_words(read.fields),
        "zone": zone,
        "from": after,
        "runs": [
            {"utc": run.instant, "local": run.local.isoformat(), "note": run.note} for run in runs
        ],
    }


def _pretty(data: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(data)).decode()
