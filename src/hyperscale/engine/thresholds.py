"""Thresholds judged: on the whole run at its end, and on the last second while it runs.

The difference of two observations is the time between them, so `for 10s` and `abort` use the same
judgement as the end of the run.
"""

from __future__ import annotations

from typing import NamedTuple

from hyperscale.engine.observation import Observation, observe
from hyperscale.metrics.histogram import LATENCY
from hyperscale.metrics.results import ThresholdResult, WorkflowResult
from hyperscale.workload.thresholds import Threshold


class Standing(NamedTuple):
    """How a `for` threshold stands: since what load time it does not hold, if so, and the value
    with which it was crossed, if it ever was."""

    bad_since_s: float | None = None
    crossing: float | None = None


class Judge:
    """One threshold of one workflow over the life of a run: the `number`th of that workflow."""

    def __init__(self, threshold: Threshold, workflow: str, number: int = 0) -> None:
        self.threshold = threshold
        self.workflow = workflow
        self.number = number
        self.standing = Standing()
        self.aborted_at_s: float | None = None
        self.latest: ThresholdResult | None = None  # when it last watched
        self._before: Observation | None = Observation()

    def resume(self, standing: Standing) -> None:
        """Go on where another judge was: what it has seen is not judged again."""
        self.standing = standing
        self._before = None

    def is_news(self, known: Standing) -> bool:
        """It is worth remembering against what is known of it. A bad moment is not yet: it must
        have lasted for a quarter of the time it may."""
        since_s = self.standing.bad_since_s
        if self.standing == known or self._before is None:
            return False
        if since_s is None or self.standing.crossing != known.crossing:
            return True
        return self._before.seconds - since_s >= self.threshold.for_s / 4

    def watch(self, workflow: WorkflowResult) -> bool:
        """Look at the run while it goes on; True when it must be aborted now."""
        now = observe(self.threshold, workflow)
        if self.threshold.for_s:
            if self._before is not None:
                self._look(self._before, now)
            self._before = now
            crossed = self.standing.crossing is not None
        else:
            actual = now.measure(self.threshold)
            crossed = actual is not None and not self.threshold.holds(actual)
        if crossed and self.threshold.abort and workflow.elapsed_s >= self.threshold.delay_s:
            self.aborted_at_s = workflow.elapsed_s
        self.latest = self._judge(now)
        self.latest.passed = self.latest.passed or self._may_be_reached(self.latest.actual)
        return self.aborted_at_s is not None

    def _look(self, before: Observation, now: Observation) -> None:
        actual = now.since(before).measure(self.threshold)
        since_s, crossing = self.standing
        if actual is None or self.threshold.holds(actual):
            since_s = None
        elif since_s is None:
            since_s = before.seconds
        if since_s is not None and now.seconds - since_s >= self.threshold.for_s:
            crossing = actual
        self.standing = Standing(since_s, crossing)

    def judge(self, workflow: WorkflowResult) -> ThresholdResult:
        return self._judge(observe(self.threshold, workflow))

    def _may_be_reached(self, count: float | None) -> bool:
        """More load may still bring the count to where it has to be."""
        rule = self.threshold
        if rule.aggregation != "count" or rule.for_s or rule.abort or count is None:
            return False
        return rule.operator in (">", ">=", "!=") or (rule.operator == "==" and count < rule.value)

    def _judge(self, observation: Observation) -> ThresholdResult:
        actual = observation.measure(self.threshold)
        if self.threshold.for_s:
            crossing = self.standing.crossing
            passed = crossing is None and actual is not None
            actual = actual if crossing is None else crossing
        else:
            passed = actual is not None and self.threshold.holds(actual)
        return ThresholdResult(
            expression=self.threshold.expression,
            scope=f"{self.workflow}: {self.threshold.scope}",
            passed=passed,
            actual=actual,
            actual_text=_text(self.threshold, actual, observation),
            aborted_at_s=self.aborted_at_s,
        )


def _text(threshold: Threshold, actual: float | None, observation: Observation) -> str:
    is_percentile = threshold.aggregation == "p"
    name = f"p({threshold.percentile:g})" if is_percentile else threshold.aggregation
    if actual is None:
        because = f", {observation.missing}" if observation.missing else ""
        return f"{name}: nothing to judge{because}"
    if threshold.aggregation in ("count", "value"):
        return f"{name}={actual:,.10g}"
    if threshold.aggregation == "rate":
        if observation.share:
            return f"{name}={_number(actual * 100, threshold.value * 100)}%"
        return f"{name}={_number(actual, threshold.value)}/s"
    unit = "ms" if observation.histogram.scale is LATENCY else ""
    return f"{name}={_number(actual, threshold.value)}{unit}"


def _number(actual: float, limit: float) -> str:
    """With two digits, and with more where these would show the limit itself."""
    digits = next((n for n in range(2, 9) if f"{actual:.{n}f}" != f"{limit:.{n}f}"), 2)
    return f"{actual:,.{digits if digits == 2 else digits + 1}f}"
