"""Pass or fail rules in the words k6 users know: `http_req_duration: p(95)<500`.

    [scope:] aggregation operator value [for 10s] [abort [after 5s]]

The scope is one of the built-in metrics, a step (`login` or `Checkout.login`), a check, a custom
metric, or a built-in metric of one step (`http_req_failed{login}`); without one it is the request
duration. Durations are milliseconds unless a unit is given. `for 10s` forgives a shorter breach;
`abort` ends the run when the threshold is crossed, `after 5s` not before that time.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NoReturn

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.durations import parse_duration

Aggregation = Literal["avg", "min", "med", "max", "p", "count", "rate", "value"]
Operator = Literal["<", "<=", ">", ">=", "==", "!="]
Family = Literal["trend", "rate", "counter", "gauge"]

DURATION = "http_req_duration"
METRICS: dict[str, Family] = {
    DURATION: "trend",  # service time: request sent to response received
    "http_req_response": "trend",  # response time: intended start to response received
    "iteration_duration": "trend",
    "http_req_failed": "rate",
    "checks": "rate",  # share that passed
    "http_reqs": "counter",
    "iterations": "counter",
    "dropped_iterations": "counter",
    "data_received": "counter",
    "data_sent": "counter",
    "vus": "gauge",
}
_PER_STEP = (DURATION, "http_req_response", "http_req_failed", "http_reqs")

_AGGREGATIONS: dict[Family, tuple[Aggregation, ...]] = {
    "trend": ("avg", "min", "med", "max", "p"),
    "rate": ("rate",),
    "counter": ("count", "rate"),
    "gauge": ("value", "min", "max"),
}
_FAMILY_OF_KIND: dict[MetricKind, Family] = {
    "count": "counter",
    "rate": "rate",
    "distribution": "trend",
    "sample": "gauge",
}
_OPERATORS: dict[Operator, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

EXAMPLE = "http_req_duration: p(95)<500"
_HINT = (
    f"write it like {EXAMPLE!r}, 'http_req_failed: rate<0.01' or 'login: p(99)<250ms for 10s abort'"
)


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    expression: str  # as the author wrote it, without the scope
    scope: str  # as the author wrote it; "http_req_duration" when left out
    aggregation: Aggregation
    percentile: float = 0.0  # of aggregation "p"
    operator: Operator
    value: float  # milliseconds for durations, 0..1 for shares, else the number as written
    unit: str = ""
    for_s: float = 0.0
    abort: bool = False
    delay_s: float = 0.0
    # What the scope means, filled in by `bind`:
    metric: str = ""  # one of METRICS, or a custom metric
    step: str = ""  # of this step or check only

    def holds(self, actual: float) -> bool:
        return _OPERATORS[self.operator](actual, self.value)


class Names(msgspec.Struct, frozen=True):
    """What a scope may refer to in one workflow."""

    workflow: str
    steps: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    metrics: dict[str, MetricKind] = {}


def parse_threshold(text: object, scope: str = "") -> Threshold:
    """Read one expression; its scope is looked up by `bind`."""
    if not isinstance(text, str):
        raise BadInput(f"threshold {text!r} is not a string", _HINT)
    return _Reader(text).threshold(scope)


def parse_thresholds(value: object) -> list[Threshold]:
    """The thresholds of a workflow: a list of expressions, or scope -> one or several."""
    if value is None:
        return []
    if isinstance(value, str):
        return [parse_threshold(value)]
    if isinstance(value, Mapping):
        parsed = []
        for scope, expressions in value.items():
            several = [expressions] if isinstance(expressions, str) else expressions
            if not isinstance(several, Sequence):
                raise BadInput(f"thresholds of {scope!r} are {expressions!r}, not a list", _HINT)
            parsed += [parse_threshold(expression, str(scope)) for expression in several]
        return parsed
    if isinstance(value, Iterable):
        return [parse_threshold(expression) for expression in value]
    raise BadInput(f"thresholds is {value!r} but must be a list of strings or a dict", _HINT)


def bind(threshold: Threshold, names: Names) -> Threshold:
    """The threshold with its scope looked up; BadInput when it means nothing in the workflow."""
    metric, step, family = _meaning(threshold, names)
    allowed = _AGGREGATIONS[family]
    if threshold.aggregation not in allowed:
        words = ", ".join("p(95)" if name == "p" else name for name in allowed)
        raise BadInput(
            f"threshold {threshold.expression!r} asks for the {threshold.aggregation} of "
            f"{threshold.scope}, which has {words}",
            _HINT,
        )
    value = _in_unit(threshold, metric, family)
    return msgspec.structs.replace(threshold, metric=metric, step=step, value=value)


def refuse_unknown_scope(threshold: Threshold, workflow: str, methods: Iterable[str]) -> None:
    """What can be said before annotations are known: whether anything has that name at all."""
    scope, _, selector = threshold.scope.rstrip("}").partition("{")
    methods = list(methods)
    if scope.removeprefix(f"{workflow}.") not in (*METRICS, *methods):
        raise _unknown(threshold, scope, [*METRICS, *methods])
    if selector and selector.removeprefix("step:") not in methods:
        raise _unknown(threshold, selector, methods)


def _meaning(threshold: Threshold, names: Names) -> tuple[str, str, Family]:
    scope, _, selector = threshold.scope.rstrip("}").partition("{")
    selector = selector.removeprefix("step:")
    name = scope.removeprefix(f"{names.workflow}.")
    if selector:
        if selector not in names.steps:
            raise _unknown(threshold, selector, names.steps)
        if scope not in _PER_STEP:
            raise _unknown(threshold, scope, _PER_STEP)
        return scope, selector, METRICS[scope]
    if name in names.steps:
        counted = threshold.aggregation in ("count", "rate")
        return ("http_reqs", name, "counter") if counted else (DURATION, name, "trend")
    if name in names.checks:
        return "checks", name, "rate"
    if name in names.metrics:
        return name, "", _FAMILY_OF_KIND[names.metrics[name]]
    if name in METRICS:
        return name, "", METRICS[name]
    raise _unknown(
        threshold, threshold.scope, [*METRICS, *names.steps, *names.checks, *names.metrics]
    )


def _unknown(threshold: Threshold, name: str, known: Iterable[str]) -> BadInput:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it may be one of {', '.join(known)}"
    return BadInput(
        f"threshold {threshold.expression!r} judges {name!r}, which is no metric, step or check",
        hint,
    )


def _in_unit(threshold: Threshold, metric: str, family: Family) -> float:
    """The value in the metric's own unit."""
    value, unit = threshold.value, threshold.unit
    if not unit:
        return value
    if unit == "%" and family == "rate":
        return value / 100
    if unit != "%" and family == "trend" and metric in METRICS:
        return parse_duration(f"{value:.6f}{unit}") * 1000
    raise BadInput(
        f"threshold {threshold.expression!r} has the unit {unit!r}, "
        f"which does not fit {threshold.scope}",
        _HINT,
    )


class _Reader:
    """Reads an expression from left to right and can say where it stopped making sense."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def threshold(self, scope: str) -> Threshold:
        if not scope:
            written = self._take(r"([A-Za-z_][\w.]*(?:\{[^{}]*\})?)\s*:")
            scope = written[1] if written else ""
        begins = self._at
        aggregation, percentile = self._aggregation()
        comparison = self._need(r"(<=|>=|==|!=|<|>)", "one of < <= > >= == !=")[1]
        number = self._need(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|%)?(?![\w.])", "a number")
        for_s = self._duration_after(r"for\b")
        abort = self._take(r"abort\b") is not None
        delay_s = self._duration_after(r"after\b") if abort else 0.0
        if self._take(r"$") is None:
            self._refuse("the end, 'for 10s' or 'abort'" if not abort else "the end or 'after 5s'")
        if not scope and aggregation in ("count", "rate", "value"):
            raise BadInput(
                f"threshold {self._text!r} does not say what its {aggregation} is of",
                f"put a metric or step before it, such as 'http_req_failed: {self._text.strip()}'",
            )
        return Threshold(
            expression=self._text[begins:].strip(),
            scope=scope or DURATION,
            aggregation=aggregation,
            percentile=percentile,
            operator=comparison,  # type: ignore[arg-type]
            value=float(number[1]),
            unit=number[2] or "",
            for_s=for_s,
            abort=abort,
            delay_s=delay_s,
        )

    def _aggregation(self) -> tuple[Aggregation, float]:
        what = "avg, min, med, max, p(95), count, rate or value"
        begins = self._at
        found = self._need(r"p\(\s*(\d+(?:\.\d+)?)\s*\)|(avg|min|med|max|count|rate|value)\b", what)
        if found[2]:
            return found[2], 0.0  # type: ignore[return-value]
        percentile = float(found[1])
        if not 0 <= percentile <= 100:
            self._at = begins
            self._refuse("a percentile from 0 to 100")
        return "p", percentile

    def _duration_after(self, word: str) -> float:
        if self._take(word) is None:
            return 0.0
        return parse_duration(
            self._need(r"([\d.]+[a-z\d.]*)", "a duration such as 10s")[1],
            f"threshold {self._text!r}: duration",
        )

    def _take(self, pattern: str) -> re.Match[str] | None:
        match = re.compile(r"\s*(?:" + pattern + ")").match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _need(self, pattern: str, what: str) -> re.Match[str]:
        match = self._take(pattern)
        if match is None:
            self._refuse(what)
        return match

    def _refuse(self, what: str) -> NoReturn:
        rest = self._text[self._at :].strip()
        place = f"at {rest!r}" if rest else "at its end"
        raise BadInput(
            f"threshold {self._text!r} is not understood {place}: expected {what}", _HINT
        )
