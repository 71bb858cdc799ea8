"""From settings to a finished run on this machine: what `run` and `demo` have in common.

In this order: everything that can be wrong is found out, the load runs in front of a view, files
are written, the summary is printed, and the exit code is decided. What goes wrong after the load
never costs the summary.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from hyperscale.cli import outputs, streams
from hyperscale.cli.empty_runs import nothing_succeeded, require_measurement
from hyperscale.cli.execution import carry_out
from hyperscale.cli.overrides import overrides_of
from hyperscale.cli.variables import Variables, variables
from hyperscale.config.run import Settings
from hyperscale.engine.run import LocalRun, RunOptions
from hyperscale.engine.source import ClassSource, FileSource
from hyperscale.errors import ExitCode, HyperscaleError, RunFailed
from hyperscale.metrics.results import fail
from hyperscale.reporting.reporting import Reporting
from hyperscale.ui.errors import print_error
from hyperscale.ui.mode import choose_mode, open_view
from hyperscale.ui.trend import DEFAULT_STATS, parse_trend_stats
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.secrets import mask, register

if TYPE_CHECKING:
    from hyperscale.engine.spawning import EarlyChildren
    from hyperscale.metrics.results import Results
    from hyperscale.ui.live import View
    from hyperscale.ui.web.beside_run import RunPage
    from hyperscale.workload.plan import TestPlan
    from hyperscale.workload.step_plan import StepPlan

WEB_FD = "HYPERSCALE_WEB_FD"
"""Set by a page that started this run: the descriptor of its pipe. It is no setting."""


def perform(
    source: FileSource | ClassSource,
    said: Settings,
    filled: Settings,
    command: str,
    early: EarlyChildren | None = None,
) -> int:
    """Run a test; `said` is stronger than what it says itself, `filled` weaker."""
    settings = said.over(filled)
    show = Show.of(settings)
    env = variables(said, filled)
    os.environ.update(env.values)
    interrupt_on_sigterm()
    prints = streams.Aside() if show.mode == "full" else None
    options = run_options(settings, env, command, None if prints is None else prints.fileno())
    run = LocalRun(source, overrides_of(said, filled, source), options, early)
    try:
        if not names_of(source):
            require_measurement(run.plan)
        show.report_also(run.plan.reporting)
    except HyperscaleError:
        run.abandon()
        raise
    run.on_trace = _tracer(settings)
    if settings.verbose:
        explain(run.plan, show.files)
    results = carry_out(
        run, show.views(), show.stop_notice, reported=show.reporting.beside(run, show.note)
    )
    if prints is not None:
        prints.show()
    return show.conclude(results, run.failure)


def names_of(source: FileSource | ClassSource) -> list[str]:
    """The workflows that were asked for by name."""
    return source.names if isinstance(source, FileSource) else []


class Show:
    """How a run is shown, and what is left of it in the end: decided before anything starts."""

    def __init__(self, settings: Settings, mode: str, files: list[outputs.File]) -> None:
        self.mode = mode
        self.page = _page(settings)
        self.files = files
        self.reporting = Reporting(outputs.urls(settings))
        self._settings = settings
        self._trend_stats = parse_trend_stats(settings.summary_trend_stats or DEFAULT_STATS)

    @classmethod
    def of(cls, settings: Settings) -> Show:
        """Raises BadInput for whatever could not be shown or written."""
        if settings.no_color:
            os.environ["NO_COLOR"] = "1"
        show = cls(settings, _mode(settings), outputs.requested(settings))
        outputs.check(show.files)
        show._reach(show.reporting)
        return show

    def report_also(self, given: Mapping[str, Any]) -> None:
        """To what the workflows of the test say themselves."""
        theirs = Reporting(given=given)
        self._reach(theirs)
        self.reporting.join(theirs)

    def _reach(self, reporting: Reporting) -> None:
        """What cannot be reached now may be back in time; unless it is required."""
        for name, value in reporting.secrets():
            register(name, value)
        with streams.patience(f"trying {', '.join(reporting.names)}"):
            errors = reporting.reach()
        for error in errors:
            if self._settings.reporter_required:
                raise RunFailed(error.message, "--reporter-required: nothing has been run")
            streams.note(f"{mask(error.message)}; the run tries again")

    def stop_notice(self) -> None:
        """A drawn view says so itself, and a line in between would break it."""
        self.note("stopping: iterations under way may finish; once more stops at once")

    def note(self, text: str) -> None:
        if self.mode != "full" and not self._settings.quiet:
            streams.note(text)

    def conclude(
        self,
        results: Results,
        failure: HyperscaleError | None,
        *,
        whole: bool = True,
    ) -> int:
        """Files, reporters, summary, errors, exit code. A run that goes on elsewhere is not
        whole."""
        from hyperscale.ui.summary import print_summary

        on_error = self._settings.exit_code_on_error
        if results.passed and results.failed and on_error:
            calls = results.requests + results.unsent
            fail(results, on_error, f"{results.failed:,} of {calls:,} requests failed")
        unwritten = outputs.write(self.files, results)
        if unwritten and results.passed:
            fail(results, ExitCode.FAILED, "a result file could not be written")
            outputs.write(self.files, results)  # those that can be written agree with the verdict
        with streams.patience(f"sending results to {', '.join(self.reporting.names)}"):
            unsent = self.reporting.conclude(results, whole=whole)
        if unsent and results.passed and self._settings.reporter_required:
            fail(results, ExitCode.FAILED, "a reporter that is required failed")
            outputs.write(self.files, results)
        unadded = outputs.append_step_summary(results)  # a convenience: it fails no run
        if failure is None or results.requests:
            print_summary(
                results,
                trend_stats=self._trend_stats,
                quiet=bool(self._settings.quiet),
                tracebacks=bool(self._settings.debug or self._settings.once),
            )
        if streams.debug and failure is not None and failure.detail:
            streams.note(failure.detail.rstrip())
        for error in (
            failure or nothing_succeeded(results),
            *unwritten,
            *unsent,
            unadded,
        ):
            if error is not None:
                print_error(error)
        if self.page is not None and self.page.is_read:
            streams.note(f"the page stays at {self.page.url} until it is closed, or Ctrl-C")
            self.page.stay(results)
        return results.exit_code

    def views(self) -> list[View]:
        """What is looked at while it runs: the terminal, and a page or who started us for one."""
        if WEB_FD in os.environ:
            from hyperscale.ui.web.pipe import PipeView

            return [PipeView(os.environ.pop(WEB_FD))]
        if self.page is None:
            return [open_view(self.mode)]
        streams.note(f"live page: {self.page.url}")
        return [open_view(self.mode, page=self.page.url), self.page]


def _page(settings: Settings) -> RunPage | None:
    """Raises BadInput where no page can be opened."""
    if not settings.web or WEB_FD in os.environ:
        return None
    from hyperscale.ui.web.beside_run import RunPage

    return RunPage(settings.web_bind or "", settings.web_token or "")


def run_options(settings: Settings, env: Variables, command: str, output: int | None) -> RunOptions:
    return RunOptions(
        workers=None if settings.workers == -1 else settings.workers,
        timeout_s=parse_duration(settings.timeout, "--timeout") if settings.timeout else None,
        lost_load=settings.lost_load or "squeeze",
        seed=settings.seed,
        env=env.values,
        secrets=env.secret,
        http_debug=settings.http_debug or "",
        once=bool(settings.once),
        command=mask(command),
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
    if not settings.once and not settings.http_debug:
        return None
    streams.note("secrets, credentials and cookies are shown as ***")
    return streams.say if settings.once else streams.note


def explain(test: TestPlan, files: list[outputs.File]) -> None:
    for plan in test.workflows:
        after = f", after {', '.join(plan.depends)}" if plan.depends else ""
        streams.note(f"{plan.name}: {plan.load.describe() if plan.is_test else 'once'}{after}")
        if plan.flow is not None:
            streams.note(
                f"  flow, with {', '.join(step.name for step in plan.steps) or 'no steps'}"
            )
        for stage in plan.stages:
            streams.note(f"  {_order(stage)}")
        for threshold in plan.thresholds:
            streams.note(f"  threshold {threshold.scope}: {threshold.expression}")
    for file in files:
        streams.note(f"will write {file.path} ({file.format})")


def _order(stage: Sequence[StepPlan]) -> str:
    if stage[0].choice.weight is None:
        return " and, at the same time, ".join(map(_described, stage))
    weighted = (f"{_described(step)} (weight {step.choice.weight:g})" for step in stage)
    return f"one of {', '.join(weighted)}"


def _described(step: StepPlan) -> str:
    what = " ".join(word for word in (step.hook_type, step.method, step.target) if word)
    return f"{step.name}: {what}"


def interrupt_on_sigterm() -> None:
    """Until the load runs, SIGTERM ends the program as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
