"""Pass or fail rules in the words k6 users know: `http_req_duration: p(95)<500`.

    [scope:] aggregation operator value [for 10s] [abort [after 5s]]

The scope is a metric, a step (`login` or `Checkout.login`), a check or a metric of the author's
own, with a selector where not all of it is meant: `http_req_duration{kind:api}`. Without one it
is the request duration. Durations are milliseconds unless a unit is given. `for 10s` forgives a
shorter breach; `abort` ends the run when the threshold is crossed, `after 5s` not before that
time. What a scope means in a workflow is in `threshold_scopes`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, NoReturn

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.selectors import Selector, read_scope, split_braces

Aggregation = Literal["avg", "min", "med", "max", "p", "count", "rate", "value"]
Operator = Literal["<", "<=", ">", ">=", "==", "!="]
Family = Literal["trend", "rate", "counter", "gauge"]
Subject = Literal["request", "step", "group", "check", "workflow", "value"]


class Measured(NamedTuple):
    family: Family
    of: Subject  # of what there is one number; decides by what it can be selected


KINDS = (
    "http",
    "tcp",
    "udp",
    "ws",
    "sse",
    "redis",
    "postgres",
    "mysql",
    "mongodb",
    "graphql",
    "smtp",
    "grpc",
    "mqtt",
    "nats",
    "rabbitmq",
    "kafka",
    "ftp",
    "sftp",
    "scp",
    "browser",
)
"""The protocols: each has metrics such as `tcp_req_duration`, which are those of HTTP for it."""

OF_PROTOCOLS: dict[str, MetricKind] = {
    "browser_web_vital_cls": "distribution",
    "browser_web_vital_fcp": "distribution",
    "browser_web_vital_inp": "distribution",
    "browser_web_vital_lcp": "distribution",
    "browser_web_vital_ttfb": "distribution",
    "kafka_msg_latency": "distribution",
    "mqtt_msg_latency": "distribution",
    "nats_msg_latency": "distribution",
    "rabbitmq_msg_latency": "distribution",
    "sse_events_received": "count",
    "ws_connecting": "distribution",
    "ws_sessions": "count",
    "ws_session_duration": "distribution",
    "ws_msgs_sent": "count",
    "ws_msgs_received": "count",
    "ws_ping": "distribution",
}
"""What protocols measure beside their requests; trends are milliseconds."""

DURATION = "http_req_duration"
METRICS: dict[str, Measured] = {
    DURATION: Measured("trend", "request"),  # service time: request sent to response received
    "http_req_response": Measured("trend", "request"),  # from the intended start
    "http_req_looking_up": Measured("trend", "request"),
    "http_req_connecting": Measured("trend", "request"),
    "http_req_tls_handshaking": Measured("trend", "request"),
    "http_req_sending": Measured("trend", "request"),
    "http_req_waiting": Measured("trend", "request"),
    "http_req_receiving": Measured("trend", "request"),
    "http_req_failed": Measured("rate", "request"),
    "http_reqs": Measured("counter", "request"),
    "data_received": Measured("counter", "request"),
    "data_sent": Measured("counter", "request"),
    "step_duration": Measured("trend", "step"),
    "step_failed": Measured("rate", "step"),
    "group_duration": Measured("trend", "group"),
    "checks": Measured("rate", "check"),  # share that passed
    "iteration_duration": Measured("trend", "workflow"),
    "iterations": Measured("counter", "workflow"),
    "dropped_iterations": Measured("counter", "workflow"),
    "vus": Measured("gauge", "workflow"),
}

AGGREGATIONS: dict[Family, tuple[Aggregation, ...]] = {
    "trend": ("avg", "min", "med", "max", "p"),
    "rate": ("rate",),
    "counter": ("count", "rate"),
    "gauge": ("value", "min", "max"),
}
FAMILY_OF_KIND: dict[MetricKind, Family] = {
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
HINT = (
    f"write it like {EXAMPLE!r}, 'http_req_failed: rate<0.01' or 'login: p(99)<250ms for 10s abort'"
)


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    expression: str  # as the author wrote it, without the scope
    scope: str  # "http_req_duration" when left out
    aggregation: Aggregation
    percentile: float = 0.0  # of aggregation "p"
    operator: Operator
    value: float  # milliseconds for durations, 0..1 for shares, else the number as written
    unit: str = ""
    for_s: float = 0.0
    abort: bool = False
    delay_s: float = 0.0
    # What the scope means, filled in by `threshold_scopes.bind`:
    metric: str = ""  # one of METRICS, or a custom metric
    family: Family | None = None  # None: of a metric that code may make, known when it has
    selector: Selector = Selector()

    def holds(self, actual: float) -> bool:
        return _OPERATORS[self.operator](actual, self.value)


def of_protocol(name: str, others: Sequence[str] = ()) -> tuple[str, str] | None:
    """`tcp_req_failed` is `http_req_failed` of the kind `tcp`; `others` are kinds of the test."""
    kind, _, rest = name.rpartition("_req")
    rest = f"req{rest}"
    if kind in (*KINDS[1:], *others) and rest.startswith("req") and f"http_{rest}" in METRICS:
        return f"http_{rest}", kind
    return None


def parse_threshold(text: object, scope: str = "") -> Threshold:
    """Read one expression; its scope is looked up by `threshold_scopes.bind`."""
    if not isinstance(text, str):
        raise BadInput(f"threshold {text!r} is not a string", HINT)
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
                raise BadInput(f"thresholds of {scope!r} are {expressions!r}, not a list", HINT)
            parsed += [parse_threshold(expression, str(scope)) for expression in several]
        return parsed
    if isinstance(value, Iterable):
        return [parse_threshold(expression) for expression in value]
    raise BadInput(f"thresholds is {value!r} but must be a list of strings or a dict", HINT)


def reserved_names(thresholds: Iterable[Threshold]) -> frozenset[str]:
    """Names of requests that are judged, so they are kept apart from all others."""
    return frozenset(one.selector.name for one in thresholds if one.selector.name)


def splits_by_status(thresholds: Iterable[Threshold]) -> bool:
    """They need more of each status than how many requests ended with it."""
    return any(each.selector.status and each.metric != "http_reqs" for each in thresholds)


def aggregations_of(family: Family) -> str:
    return ", ".join("p(95)" if name == "p" else name for name in AGGREGATIONS[family])


class _Reader:
    """Reads an expression from left to right and can say where it stopped making sense."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def threshold(self, scope: str) -> Threshold:
        scope = scope or self._scope()
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
            scope=str(read_scope(scope or DURATION)),
            aggregation=aggregation,
            percentile=percentile,
            operator=comparison,  # type: ignore[arg-type]
            value=float(number[1]),
            unit=number[2] or "",
            for_s=for_s,
            abort=abort,
            delay_s=delay_s,
        )

    def _scope(self) -> str:
        begins = self._at
        if self._take(r"[A-Za-z_][\w.-]*\s*(?=[:{])") is None:
            return ""
        if self._text[self._at] == "{":
            _, length = split_braces(self._text[self._at :])
            if not length:
                self._refuse("braces that close")
            self._at += length
        scope = self._text[begins : self._at]
        self._need(":", "a colon after the scope")
        return scope

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
        raise BadInput(f"threshold {self._text!r} is not understood {place}: expected {what}", HINT)
