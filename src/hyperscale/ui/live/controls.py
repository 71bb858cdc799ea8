"""What the keys do to the run, and the few words with which the view answers."""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.metrics.results import Results
from hyperscale.ui import text
from hyperscale.ui.live.source import Source

SCALE_SHARE = 0.1  # of the VUs a workflow now has, for one press of + or -


class Controls:
    def __init__(self, source: Source, next_workflow: Callable[[], None]) -> None:
        self._source = source
        self._next_workflow = next_workflow

    def press(self, key: str) -> str:
        """Does what the key means; returns the answer to show, "" when there is none."""
        match key.lower():
            case "p" | " ":
                return self._toggle_pause()
            case "+" | "=":
                return self._scale(1)
            case "-" | "_":
                return self._scale(-1)
            case "\t":
                self._next_workflow()
            case "q":
                return self._stop()
        return ""

    def _toggle_pause(self) -> str:
        state = self._source.results().state
        if state == "paused":
            self._source.resume()
            return "resuming"
        if state == "running":
            self._source.pause()
            return "pausing"
        return ""

    def _scale(self, sign: int) -> str:
        results = self._source.results()
        if results.state not in ("running", "paused"):
            return ""
        vus = active_vus(results)
        if not vus:
            return ""
        amount = max(1, round(sum(vus) / len(vus) * SCALE_SHARE))
        if sign < 0:
            amount = min(amount, min(vus) - 1)
        if amount < 1:
            return "1 VU is the least; q stops the run"
        self._source.scale(sign * amount)
        where = " each" if len(vus) > 1 else ""
        units = "VU" if amount == 1 else "VUs"
        return f"{'adding' if sign > 0 else 'removing'} {text.count(amount)} {units}{where}"

    def _stop(self) -> str:
        if self._source.results().state == "stopping":
            self._source.kill()
            return "stopping now"
        self._source.stop()
        return "stopping after the iterations under way"


def active_vus(results: Results) -> list[int]:
    """The VUs of each workflow under way."""
    return [
        workflow.vus
        for workflow in results.workflows
        if workflow.state in ("running", "paused") and workflow.vus
    ]
