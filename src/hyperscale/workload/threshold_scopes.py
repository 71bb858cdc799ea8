"""What the scope of a threshold means in one workflow; a scope that means nothing is refused.

Steps, checks, groups, metrics and tags are known before the load, so a typo is found before it
too. What only code brings (tags of calls, metrics made in code) is told by the words in that code.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, NoReturn

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.code_words import CodeWords
from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.selectors import Scope, Selector, read_scope
from hyperscale.workload.thresholds import (
    AGGREGATIONS,
    DURATION,
    FAMILY_OF_KIND,
    HINT,
    KINDS,
    METRICS,
    OF_PROTOCOLS,
    Family,
    Subject,
    Threshold,
    aggregations_of,
    of_protocol,
)

_KEYS: dict[Subject, tuple[str, ...]] = {
    "request": ("step", "group", "status", "method", "name", "kind"),
    "step": ("step", "group", "kind"),
    "group": ("group",),
    "check": ("check",),
    "workflow": (),
    "value": (),
}
# A request has these keys, so they are no tags of a step either.
_NO_TAGS: dict[Subject, tuple[str, ...]] = {"step": ("status", "method", "name")}
_TAGGED: tuple[Subject, ...] = ("request", "step", "value")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")


class Names(msgspec.Struct, frozen=True):
    """What a scope may refer to in one workflow."""

    workflow: str
    steps: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    metrics: dict[str, MetricKind] = {}
    others: tuple[str, ...] = ()  # what else may make requests: actions, on_start, flow
    groups: dict[str, str] = {}  # step -> its group
    tags: dict[str, tuple[str, ...]] = {}  # of the workflow and its steps: key -> values
    code: CodeWords = CodeWords()
    protocols: tuple[str, ...] = ()  # kinds that only this workflow has


class _Meaning(NamedTuple):
    metric: str
    family: Family | None
    selector: Selector


def bind(threshold: Threshold, names: Names) -> Threshold:
    """The threshold with its scope looked up; BadInput when it means nothing in the workflow."""
    scope = _own(threshold, names)
    metric, family, selector = _Lookup(threshold, names).meaning(scope)
    if family is not None and threshold.aggregation not in AGGREGATIONS[family]:
        raise BadInput(
            f"threshold {threshold.expression!r} asks for the {threshold.aggregation} of "
            f"{scope}, which has {aggregations_of(family)}",
            HINT,
        )
    value = _in_unit(threshold, metric, family)
    return msgspec.structs.replace(
        threshold, scope=str(scope), metric=metric, family=family, selector=selector, value=value
    )


def refuse_unknown_scope(threshold: Threshold, names: Names) -> None:
    """What can be said before annotations are known, when any method may be a step or a check."""
    scope = _own(threshold, names)
    if scope.name not in names.steps:
        _Lookup(threshold, names).meaning(scope)


def _own(threshold: Threshold, names: Names) -> Scope:
    """The scope without the workflow, which is the only one that its threshold can judge."""
    scope = read_scope(threshold.scope)
    pairs = dict(scope.pairs)
    workflow = pairs.pop("workflow", names.workflow)
    if workflow != names.workflow:
        raise BadInput(
            f"threshold {threshold.expression!r} selects workflow:{workflow}, but belongs to "
            f"{names.workflow}",
            _did_you_mean(workflow, [names.workflow]),
        )
    return Scope(scope.name.removeprefix(f"{names.workflow}."), pairs)


class _Lookup:
    def __init__(self, threshold: Threshold, names: Names) -> None:
        self._expression = threshold.expression
        self._counts = threshold.aggregation in ("count", "rate")
        self._names = names
        self._kinds = (*KINDS, "custom", *names.protocols)  # any other kind is a tag

    def meaning(self, scope: Scope) -> _Meaning:
        name, names = scope.name, self._names
        if name in names.checks:
            return self._built_in("checks", scope, "check")
        if name in names.metrics:
            return self._custom(scope, FAMILY_OF_KIND[names.metrics[name]])
        if name in names.steps or name in names.others:
            return self._built_in("http_reqs" if self._counts else DURATION, scope, "step")
        if name in METRICS:
            return self._built_in(name, scope)
        protocol = of_protocol(name, names.protocols)
        if protocol is not None:
            metric, kind = protocol
            return self._built_in(metric, Scope(name, {**scope.pairs, "kind": kind}))
        if name in OF_PROTOCOLS:
            return self._custom(scope, FAMILY_OF_KIND[OF_PROTOCOLS[name]])
        if name in names.code.metrics:
            return self._custom(scope, FAMILY_OF_KIND[names.code.metrics[name]])
        if names.code.names_metrics and name:
            return self._custom(scope, None)
        known = [*METRICS, *names.steps, *names.checks, *names.metrics, *names.code.metrics]
        raise BadInput(
            f"threshold {self._expression!r} judges {name!r}, which is no metric, step or check",
            _did_you_mean(name, known),
        )

    def _built_in(self, metric: str, scope: Scope, named: str = "") -> _Meaning:
        """`named` is the key whose value the scope's own name is."""
        pairs = dict(scope.pairs)
        if named in pairs:
            self._refuse(f"selects by {named!r} within the {named} {scope.name!r}", HINT)
        if named:
            pairs[named] = scope.name
        family, subject = METRICS[metric]
        return _Meaning(metric, family, self._selector(metric, subject, pairs))

    def _custom(self, scope: Scope, family: Family | None) -> _Meaning:
        return _Meaning(scope.name, family, self._selector(scope.name, "value", scope.pairs))

    def _selector(self, metric: str, subject: Subject, pairs: dict[str, str]) -> Selector:
        fields: dict[str, Any] = {}
        tags: dict[str, str] = {}
        for key, value in pairs.items():
            if key == "dc":
                fields["dc"] = value  # only gates know which there are
            elif key in _KEYS[subject] and (key != "kind" or value in self._kinds):
                fields[key] = self._value(key, value)
            elif subject in _TAGGED and key not in _NO_TAGS.get(subject, ()):
                self._tag(key, value, ("workflow", *_KEYS[subject]))
                tags[key] = value
            else:
                by = ", ".join(("workflow", "dc", *_KEYS[subject]))
                self._refuse(
                    f"selects by {key!r}, by which {metric} is not told",
                    f"it can be selected by {by}",
                )
        step, group = fields.get("step", ""), fields.get("group", "")
        if step and group and self._names.groups.get(step) != group:
            self._refuse(f"selects the step {step!r} in the group {group!r}, where it is not", HINT)
        return Selector(**fields, tags=tags)

    def _value(self, key: str, value: str) -> str:
        """As results tell it. Names of requests come into being with the requests."""
        names = self._names
        match key:
            case "step":
                self._need(key, value, (*names.steps, *names.others))
            case "group":
                self._need(key, value, sorted(set(names.groups.values())))
            case "check":
                self._need(key, value, names.checks)
            case "status" if not re.fullmatch(r"\d{3}", value):
                self._refuse(
                    f"selects status:{value}, which is no HTTP status", "write it like status:503"
                )
            case "method" if value.upper() in _METHODS:
                return value.upper()
            case "method" if value not in names.code.words:
                self._need(key, value, _METHODS)
        return value

    def _need(self, key: str, value: str, known: Collection[str]) -> None:
        if value not in known:
            self._refuse(
                f"selects {key}:{value}, but {self._names.workflow} has no such {key}",
                _did_you_mean(value, known) if known else f"no step of it has a {key}",
            )

    def _tag(self, key: str, value: str, keys: Iterable[str]) -> None:
        names = self._names
        if key in names.code.words:  # a call may bring it, with any value
            return
        if key not in names.tags:
            self._refuse(
                f"selects by {key!r}, which is no tag of {names.workflow}",
                _did_you_mean(
                    key,
                    [*keys, *names.tags, *sorted(names.code.words)],
                    otherwise="give tags={...} to the workflow, to a step or to a call",
                ),
            )
        if value not in names.tags[key]:
            self._refuse(
                f"selects {key}:{value}, but nothing in {names.workflow} has that tag",
                _did_you_mean(value, names.tags[key]),
            )

    def _refuse(self, what: str, hint: str) -> NoReturn:
        raise BadInput(f"threshold {self._expression!r} {what}", hint)


def _did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    known = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return otherwise or f"it may be one of {', '.join(known)}"


def _in_unit(threshold: Threshold, metric: str, family: Family | None) -> float:
    """The value in the metric's own unit."""
    value, unit = threshold.value, threshold.unit
    if not unit:
        return value
    if unit == "%" and (family == "rate" or (family is None and threshold.aggregation == "rate")):
        return value / 100
    if unit != "%" and family == "trend" and (metric in METRICS or metric in OF_PROTOCOLS):
        return parse_duration(f"{value:.6f}{unit}") * 1000
    raise BadInput(
        f"threshold {threshold.expression!r} has the unit {unit!r}, "
        f"which does not fit {threshold.scope}",
        HINT,
    )
