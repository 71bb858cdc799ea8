"""From settings to a finished run: what `run` and `demo` have in common.

In this order: everything that can be wrong is found out, the load runs in front of a view, files
are written, the summary is printed, and the exit code is decided. What goes wrong after the load
never costs the summary.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from hyperscale.cli import outputs, streams
from hyperscale.cli.execution import carry_out
from hyperscale.cli.overrides import overrides_of
from hyperscale.cli.sense import nothing_succeeded, require_measurement
from hyperscale.config import Settings
from hyperscale.engine import FileSource, LocalRun, RunOptions
from hyperscale.errors import BadInput, ExitCode
from hyperscale.ui.errors import print_error
from hyperscale.ui.mode import choose_mode, open_view
from hyperscale.ui.trend import DEFAULT_STATS, parse_trend_stats
from hyperscale.workload.durations import parse_duration

if TYPE_CHECKING:
    from hyperscale.metrics.results import Results


def perform(path: str, names: list[str], said: Settings, filled: Settings, command: str) -> int:
    """Run a test file; `said` is stronger than what it says itself, `filled` weaker."""
    settings = said.over(filled)
    if settings.no_color:
        os.environ["NO_COLOR"] = "1"
    trend_stats = parse_trend_stats(settings.summary_trend_stats or DEFAULT_STATS)
    mode = _mode(settings)
    files = outputs.requested(settings)
    outputs.check(files)
    env = _environment(said, filled)
    os.environ.update(env)
    _interrupt_on_sigterm()
    source = FileSource(path, names)
    prints = streams.Aside() if mode == "full" else None
    options = _options(settings, env, command, None if prints is None else prints.fileno())
    run = LocalRun(source, overrides_of(said, filled, source), options)
    if not names:
        try:
            require_measurement(run.plan)
        except BadInput:
            run.abandon()
            raise
    run.on_trace = _tracer(settings)
    if settings.verbose:
        _explain(run, files)
    results = carry_out(run, open_view(mode), _stop_notice(mode, settings))
    if prints is not None:
        prints.show()

    from hyperscale.ui.summary import print_summary

    unwritten = outputs.write(files, results)
    if run.failure is None or results.requests:
        print_summary(results, trend_stats=trend_stats, quiet=bool(settings.quiet))
    for error in (run.failure or nothing_succeeded(results), *unwritten):
        if error is not None:
            print_error(error)
    return _exit_code(results, settings, bool(unwritten))


def _environment(said: Settings, filled: Settings) -> dict[str, str]:
    """Variables for the test; those of the config file yield to the environment there is."""
    given = {name: value for name, value in (filled.env or {}).items() if name not in os.environ}
    return given | (said.env or {})


def _options(
    settings: Settings, env: dict[str, str], command: str, output: int | None
) -> RunOptions:
    return RunOptions(
        workers=None if settings.workers == -1 else settings.workers,
        timeout_s=parse_duration(settings.timeout, "--timeout") if settings.timeout else None,
        seed=settings.seed,
        env=env,
        http_debug=settings.http_debug or "",
        once=bool(settings.once),
        command=command,
        output=output,
    )


def _mode(settings: Settings) -> str:
    """Exchanges are printed where a drawn view would be, so they take its place."""
    if settings.quiet or settings.once:
        return "none"
    if settings.http_debug or settings.headless:
        return choose_mode(settings.ui if settings.ui == "none" else "ci", sys.stderr)
    return choose_mode(settings.ui, sys.stderr)


def _tracer(settings: Settings) -> Callable[[str], None] | None:
    """Exchanges are what `--once` is asked for, so they go to stdout; otherwise they are a log."""
    if settings.once:
        return streams.say
    return streams.note if settings.http_debug else None


def _stop_notice(mode: str, settings: Settings) -> Callable[[], None]:
    """A drawn view says so itself, and a line in between would break it."""

    def say() -> None:
        if mode != "full" and not settings.quiet:
            streams.note("stopping: iterations under way may finish; once more stops at once")

    return say


def _explain(run: LocalRun, files: list[outputs.File]) -> None:
    for plan in run.plan.workflows:
        after = f", after {', '.join(plan.depends)}" if plan.depends else ""
        streams.note(f"{plan.name}: {plan.load.describe() if plan.is_test else 'once'}{after}")
        for step in plan.steps:
            what = " ".join(word for word in (step.hook_type, step.method, step.target) if word)
            streams.note(f"  {step.name}: {what}")
        for threshold in plan.thresholds:
            streams.note(f"  threshold {threshold.scope}: {threshold.expression}")
    for file in files:
        streams.note(f"will write {file.path} ({file.format})")


def _exit_code(results: Results, settings: Settings, unwritten: bool) -> int:
    if results.exit_code != ExitCode.PASSED:
        return results.exit_code
    if unwritten:
        return int(ExitCode.FAILED)
    if results.failed and settings.exit_code_on_error is not None:
        return settings.exit_code_on_error
    return int(ExitCode.PASSED)


def _interrupt_on_sigterm() -> None:
    """Until the load runs, SIGTERM ends the program as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
