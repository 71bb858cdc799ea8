"""Runs from Python: one call for notebooks and pytest, and the `LocalRunner` of longer programs."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from hyperscale.engine.run import LocalRun, RunOptions
from hyperscale.engine.source import ClassSource, FileSource
from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results
from hyperscale.reporting.reporting import Reporting
from hyperscale.ui.live import View
from hyperscale.ui.live.beside import beside
from hyperscale.ui.mode import open_view
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.given import AnyWorkflow, tagged
from hyperscale.workload.plan import Overrides

TerminalMode = Literal["full", "ci", "none"]


def run(
    *workflows: AnyWorkflow,
    name: str = "",
    workers: int | None = None,
    timeout: str | float | None = None,
    seed: int | None = None,
    env: dict[str, str] | None = None,
    ui: TerminalMode = "none",
    **overrides: Any,
) -> Results:
    """Run workflows and return their results: `hyperscale.run(Checkout, vus=50, duration="10s")`.

    A workflow is a class, an instance, or a `DependentWorkflow` of either. Other keywords are those
    of `Overrides` (vus, vus_each, duration, rate, stages, iterations, max_vus, rps, thresholds,
    no_thresholds, tags, insecure, base_url) and win over the class; `vus` and `rate` are totals of
    all workflows. Raises `HyperscaleError` only when nothing could be started; a run that went
    badly is in the results (`results.passed`, `results.exit_code`, `results.cut_reason`).
    """
    options = RunOptions(
        name=name,
        workers=workers,
        timeout_s=None if timeout is None else parse_duration(timeout),
        seed=seed,
        env=env or {},
    )
    try:
        flags = Overrides(**overrides)
    except TypeError as error:
        known = ", ".join(Overrides.__struct_fields__)
        raise BadInput(f"run(): {error}", f"it takes {known}") from None
    return _finished(_play(LocalRun(ClassSource(*workflows), flags, options), open_view(ui)))


def run_file(path: str | Path, *names: str) -> Results:
    """As `run`, for the workflows of a test file, or those of these names with what they depend
    on."""
    source = FileSource(str(path), list(names))
    return _finished(_play(LocalRun(source), open_view("none")))


def _finished(playing: Coroutine[Any, Any, Results]) -> Results:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(playing)
    # A notebook runs inside an event loop, which cannot be entered twice.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, playing).result()


async def _play(local_run: LocalRun, view: View) -> Results:
    try:
        reporting = Reporting(given=local_run.plan.reporting)
    except BadInput:
        local_run.abandon()
        raise
    async with reporting.beside(local_run, _warn), beside(view, local_run, _warn):
        results = await local_run.execute()
    for error in await reporting.concluded(results):
        _warn(error.message)
    if local_run.failure is not None:
        raise local_run.failure
    return results


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


class LocalRunner:
    """Runs tests on this machine. Generators talk over socket pairs, so host and port only label
    the runner."""

    def __init__(self, host: str = "localhost", port: int = 0, workers: int | None = None) -> None:
        self.host = host
        self.port = port
        self._workers = workers

    async def run(
        self,
        test_name: str,
        workflows: Sequence[tuple[Sequence[str], AnyWorkflow]],
        terminal_mode: TerminalMode = "none",
        timeout: str | float = "5m",
    ) -> Results:
        """Each workflow comes with its tags; those that all of them have are the run's. `timeout`
        bounds the whole run. An instance runs as it is: its users start with its attributes."""
        view = open_view(terminal_mode)
        every = {tag for names, _ in workflows for tag in names}
        common = {tag: "" for tag in sorted(every) if all(tag in names for names, _ in workflows)}
        local_run = LocalRun(
            ClassSource(
                *(
                    tagged(workflow, {tag: "" for tag in names if tag not in common})
                    for names, workflow in workflows
                )
            ),
            Overrides(tags=common),
            RunOptions(name=test_name, workers=self._workers, timeout_s=parse_duration(timeout)),
        )
        return await _play(local_run, view)
