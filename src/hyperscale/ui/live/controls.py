"""What the keys do to the run, and the few words with which the view answers.

More and less of the load means users where users make it, and the rate where arrivals do; of the
workflow that is shown, or of each one when all are.
"""

from __future__ import annotations

from hyperscale.metrics.results import WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.live.pages import Pages
from hyperscale.ui.live.source import Source

STEP = 0.1  # of its users or its rate, for one press of + or -


class Controls:
    def __init__(self, source: Source, pages: Pages) -> None:
        self._source = source
        self._pages = pages

    def press(self, key: str) -> str:
        """Does what the key means; returns the answer to show, "" when there is none."""
        match key.lower():
            case "p" | " ":
                return self._toggle_pause()
            case "+" | "=":
                return self._change(1)
            case "-" | "_":
                return self._change(-1)
            case "\t":
                self._pages.next(self._source.results())
            case digit if digit.isdecimal():
                self._pages.choose(int(digit))
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

    def _change(self, sign: int) -> str:
        results = self._source.results()
        under_way = [
            workflow
            for workflow in self._pages.shown(results)
            if workflow.state in ("running", "paused") and (workflow.vus or workflow.open_model)
        ]
        answers = [self._change_one(workflow, sign) for workflow in under_way]
        done = [answer for answer in answers if answer]
        if not done:
            return "1 VU is the least; q stops the run" if answers else ""
        if len(done) == 1:
            return (
                done[0]
                if len(under_way) == 1
                else f"{under_way[answers.index(done[0])].name}: {done[0]}"
            )
        return f"{'10 % more' if sign > 0 else '10 % less'} of {len(done)} workflows"

    def _change_one(self, workflow: WorkflowResult, sign: int) -> str:
        if workflow.open_model:
            self._source.change_rate(1 + sign * STEP, workflow.name)
            return f"{'raising' if sign > 0 else 'lowering'} the rate by 10 %"
        amount = max(1, round(workflow.vus * STEP))
        if sign < 0:
            amount = min(amount, workflow.vus - 1)
        if amount < 1:
            return ""
        self._source.scale(sign * amount, workflow.name)
        units = "VU" if amount == 1 else "VUs"
        return f"{'adding' if sign > 0 else 'removing'} {text.count(amount)} {units}"

    def _stop(self) -> str:
        if self._source.results().state == "stopping":
            self._source.kill()
            return "stopping now"
        self._source.stop()
        return "stopping after the iterations under way"
