"""A run that only pretends: fixed numbers, and a record of what the keys did to it."""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.metrics.results import Results
from tests.unit.ui.sample import sample_results


class FakeRun:
    """Ends after `snapshots` were taken, or when it is stopped twice."""

    def __init__(
        self,
        results: Results | None = None,
        *,
        snapshots: int | None = None,
        on_snapshot: Callable[[int], None] | None = None,
    ) -> None:
        self.now = sample_results("running") if results is None else results
        self.calls: list[str] = []
        self._snapshots = snapshots
        self._on_snapshot = on_snapshot
        self._taken = 0

    def results(self) -> Results:
        self._taken += 1
        if self._on_snapshot:
            self._on_snapshot(self._taken)
        if self._snapshots is not None and self._taken >= self._snapshots:
            self._become("finished")
        return self.now

    def pause(self) -> None:
        self._note("pause", "paused")

    def resume(self) -> None:
        self._note("resume", "running")

    def scale(self, delta_vus: int, workflow: str | None = None, /) -> None:
        self._note(f"scale {workflow} {delta_vus:+}", self.now.state)
        for each in self.now.workflows:
            each.vus += delta_vus if workflow in (None, each.name) else 0

    def change_rate(self, factor: float, workflow: str | None = None, /) -> None:
        self._note(f"rate {workflow} {factor:.1f}", self.now.state)

    def stop(self) -> None:
        self._note("stop", "stopping")

    def kill(self) -> None:
        self._note("kill", "finished")

    def _note(self, call: str, state: str) -> None:
        self.calls.append(call)
        self._become(state)

    def _become(self, state: str) -> None:
        self.now.state = state  # type: ignore[assignment]
        for workflow in self.now.workflows:
            workflow.state = self.now.state
