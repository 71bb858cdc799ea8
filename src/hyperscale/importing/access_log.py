"""An access log in the common or the combined format, as nginx and Apache write it: a mix of
requests at the rate that was seen.

It tells nothing of users, bodies and headers, so each iteration is one request, by weight.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from math import ceil, gcd

from hyperscale.importing.draft import Call, Code, Draft, Step, unmarked
from hyperscale.importing.names import call_name, unused
from hyperscale.importing.requests import is_asset, made_call
from hyperscale.workload.durations import format_duration
from hyperscale.workload.scope import fold_ids

LINE = re.compile(
    r"\[(\d{2}/\w{3}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4})\] "
    r'"([A-Z]+) (/\S*)(?: HTTP/[\d.]+)?" (\d{3})'
)
STEPS_MOST = 20
TARGETS_MOST = 10  # of one step
KINDS_MOST = 10_000  # that are counted at all: scanners ask for anything
STAGES_MOST = 12
STEADY = 0.25  # a rate that strays no further from its mean is called one rate


def read_access_log(lines: Iterable[str], url: str, default: str, assets: bool) -> Draft:
    kinds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    seconds: Counter[int] = Counter()
    refused = left = 0
    for line in lines:
        found = LINE.search(line)
        if found is None:
            continue
        stamp, method, target, status = found.groups()
        path = target.partition("?")[0]
        kind = (method, fold_ids(path))
        if status.startswith("4"):
            refused += 1
        elif (is_asset(path) and not assets) or (kind not in kinds and len(kinds) == KINDS_MOST):
            left += 1
        else:
            kinds[kind][unmarked(target)] += 1
            seconds[_seconds(stamp)] += 1
    if not kinds:
        return Draft("", "", [])
    common = sorted(kinds.items(), key=lambda kind: -kind[1].total())
    total = sum(targets.total() for _, targets in common)
    draft = Draft(
        f"The mix of {total:,} requests of an access log, at the rate that was seen.",
        (url or default).rstrip("/"),
        [],
        load=_load(seconds),
    )
    if "stages" in draft.load:
        draft.hints.append("-d 10m      # the same course in ten minutes")
    weights = _weights([targets.total() for _, targets in common[:STEPS_MOST]])
    for ((method, path), targets), weight in zip(common, weights, strict=False):
        draft.steps.append(_step(draft, method, path, targets, weight))
    rest = sum(targets.total() for _, targets in common[STEPS_MOST:])
    for count, what in (
        (refused, "that were refused (4xx) and would be again"),
        (left, "for static assets; --assets keeps them"),
        (rest, f"for {len(common) - STEPS_MOST} rare paths"),
    ):
        if count:
            draft.notes.append(f"left out {count} request{'' if count == 1 else 's'} {what}")
    if any(step.calls[0].method in ("POST", "PUT", "PATCH") for step in draft.steps):
        draft.notes.append(
            "a log has no bodies: POST, PUT and PATCH send none until you write them"
        )
    return draft


def _seconds(stamp: str) -> int:
    return int(datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z").timestamp())


def _step(draft: Draft, method: str, path: str, targets: Counter[str], weight: int) -> Step:
    name = unused(call_name(method, path), [step.name for step in draft.steps])
    seen = dict(targets.most_common(TARGETS_MOST))
    if len(seen) == 1:
        return Step(name, [made_call(method, next(iter(seen)))], weight=weight)
    constant = f"{name.strip('_')}_paths".upper()
    draft.constants[constant] = dict(zip(seen, _weights([*seen.values()]), strict=True))
    chosen = Code(f"self.random.choices([*{constant}], [*{constant}.values()])[0]")
    return Step(name, [Call(method, chosen, name=unmarked(path))], weight=weight)


def _weights(counts: list[int]) -> list[int]:
    """Numbers in the proportion of the counts: per mille where these are large."""
    total = sum(counts)
    scaled = [max(1, round(count * 1000 / total)) for count in counts] if total > 1000 else counts
    return [weight // gcd(*scaled) for weight in scaled]


def _load(seconds: Counter[int]) -> dict[str, object]:
    first, last = min(seconds), max(seconds)
    span = last - first + 1
    length = 60 * max(1, ceil(span / STAGES_MOST / 60))
    lengths = [length] * (span // length) + ([span % length] if span % length else [])
    counts = [0] * len(lengths)
    for second, requests in seconds.items():
        counts[(second - first) // length] += requests
    rates = [requests / length for requests, length in zip(counts, lengths, strict=True)]
    mean = sum(counts) / span
    if all(abs(rate - mean) <= STEADY * mean for rate in rates):
        return {"rate": _rate(mean), "duration": format_duration(span)}
    # Between two of these the rate goes along a line, so each is the middle of its neighbours.
    ends = [(one + other) / 2 for one, other in pairwise(rates)] + [rates[-1]]
    stages = [(format_duration(s), _rate(rate)) for s, rate in zip(lengths, ends, strict=True)]
    return {"rate": _rate(rates[0]), "stages": stages}


def _rate(per_second: float) -> str:
    if per_second >= 1:
        return f"{per_second:.3g}/s" if per_second < 1000 else f"{per_second:.0f}/s"
    return f"{max(per_second * 60, 0.01):.3g}/m"
