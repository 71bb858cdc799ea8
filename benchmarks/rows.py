"""The rows of `http1.py` and `https.py`: the same loads, with and without TLS.

A row is a load, the tools that take turns at it, and the least our side must reach. The target
carries the scheme; what is required depends on it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import accuracy
import memory
import startup
from contenders import (
    HYPERSCALE,
    IN_TERMINAL,
    K6,
    LOCUST,
    WITH_VIEW,
    WRK,
    Contender,
    Load,
    before,
)
from harness import Figure
from races import Bound, Comparison, race
from targets import BODY_BYTES, Target

VUS = 64
SIX_VUS = 60  # ten each, or all in one workflow
MANY_VUS = 5_000
# Connecting 5,000 users takes a while on one core; the window opens when all of them are there.
MANY_SLACK_S = {"http": 6.0, "https": 15.0}
OURS = HYPERSCALE.name

REQUIRED = {
    ("http", "get", "wrk"): Bound(0.68, aim=0.8),
    ("http", "get", "k6"): Bound(7.5),
    ("http", "get", "Locust"): Bound(18),
    ("http", "flow", "k6"): Bound(5, by="rate"),
    ("http", "flow", "Locust"): Bound(12, by="rate"),
    ("http", "100000", "wrk"): Bound(0.8),
    ("https", "get", "wrk"): Bound(0.55, aim=0.7),
    ("https", "get", "k6"): Bound(4),
    ("https", "get", "Locust"): Bound(15),
    ("https", "100000", "wrk"): Bound(0.8),
    ("https", "fresh", "wrk"): Bound(0.6),
    ("https", "fresh", "k6"): Bound(1.5),
}
MANY_SHARE = Bound(0.75)
VIEW_SHARE = Bound(0.97, by="rate")
KIB_PER_VU_MAX = {"http": 8.0, "https": 40.0}


@dataclass(frozen=True)
class Part:
    """Some rows and the rounds behind them."""

    comparisons: list[Comparison] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    detail: str = ""


def against_peers(
    target: Target,
    options: argparse.Namespace,
    what: str,
    load: Load,
    peers: Sequence[Contender],
    key: str = "",
) -> Part:
    turns = [(tool.name, tool, load) for tool in (HYPERSCALE, *peers)]
    taken = race(target, turns, options.rounds)
    rows = [
        taken.compare(
            what, OURS, peer.name, REQUIRED.get((target.scheme, key or load.flow, peer.name))
        )
        for peer in peers
    ]
    return Part(rows, detail=taken.report())


def get(target: Target, options: argparse.Namespace) -> Part:
    load = Load("get", VUS, options.seconds)
    return against_peers(target, options, f"GET, {VUS} VUs, one core", load, (WRK, K6, LOCUST))


def flow(target: Target, options: argparse.Namespace) -> Part:
    load = Load("flow", VUS, options.seconds)
    what = "two steps, JSON parsed, header from context"
    return against_peers(target, options, what, load, (K6, LOCUST))


def sizes(target: Target, options: argparse.Namespace) -> Part:
    parts = []
    for size in BODY_BYTES:
        load = Load("get", VUS, options.seconds, path=f"/{size}")
        what = f"GET of {size // 1000} KB"
        parts.append(against_peers(target, options, what, load, (WRK,), key=str(size)))
    rows = [row for part in parts for row in part.comparisons]
    return Part(rows, detail="\n\n".join(part.detail for part in parts))


def post(target: Target, options: argparse.Namespace) -> Part:
    load = Load("post", VUS, options.seconds, path="/post")
    return against_peers(target, options, "POST of 10 KB", load, (WRK, K6, LOCUST))


def gzip(target: Target, options: argparse.Namespace) -> Part:
    """wrk never decodes a body, k6 and Locust always do, and Hyperscale when it is read."""
    peers = Load("gzip", VUS, options.seconds, path="/catalogue")
    kept = Load("get", VUS, options.seconds, path="/catalogue")
    read = Load("get_read", VUS, options.seconds, path="/catalogue")
    turns = [
        (OURS, HYPERSCALE, kept),
        (f"{OURS}, decoded", HYPERSCALE, read),
        *((tool.name, tool, peers) for tool in (WRK, K6, LOCUST)),
    ]
    taken = race(target, turns, options.rounds)
    decoded = turns[1][0]
    return Part(
        [
            taken.compare("gzip body, as received", OURS, WRK.name),
            taken.compare("gzip body, decoded", decoded, K6.name),
            taken.compare("gzip body, decoded", decoded, LOCUST.name),
        ],
        detail=taken.report(),
    )


def fresh(target: Target, options: argparse.Namespace) -> Part:
    load = Load("fresh", VUS, options.seconds, keeps_connections=False)
    what = "a new connection for each request"
    return against_peers(target, options, what, load, (WRK, K6))


def view(target: Target, options: argparse.Namespace) -> Part:
    load = Load("get", VUS, options.seconds)
    turns = [("view full", WITH_VIEW, load), ("view none", IN_TERMINAL, load)]
    taken = race(target, turns, options.rounds)
    row = taken.compare("the live view", "view full", "view none", VIEW_SHARE)
    return Part([row], detail=taken.report())


def growth(target: Target, options: argparse.Namespace) -> Part:
    many = Load("get", MANY_VUS, options.seconds, MANY_SLACK_S[target.scheme])
    turns = [
        (f"{MANY_VUS:,} VUs", HYPERSCALE, many),
        (f"{VUS} VUs", HYPERSCALE, Load("get", VUS, options.seconds)),
    ]
    taken = race(target, turns, options.rounds)
    row = taken.compare(f"{MANY_VUS:,} users", turns[0][0], turns[1][0], MANY_SHARE)
    return Part([row], detail=taken.report())


def against_before(target: Target, options: argparse.Namespace) -> Part:
    one = "one-request step"
    if not options.before:
        reason = "not measured: --before names no checkout of earlier code"
        return Part([Comparison(one, "before", "≥ 0.98 × by CPU", reason, "", None)])
    get, flow = Load("get", VUS, options.seconds), Load("get_flow", VUS, options.seconds)
    turns = [
        ("before", before(options.before), get),
        ("graph", HYPERSCALE, get),
        ("flow", HYPERSCALE, flow),
    ]
    taken = race(target, turns, options.rounds)
    return Part(
        [
            taken.compare(one, "graph", "before", Bound(0.98)),
            taken.compare("the same through flow", "flow", "before", Bound(0.95)),
        ],
        detail=taken.report(),
    )


def tasks(target: Target, options: argparse.Namespace) -> Part:
    ten, weighted = Load("ten", VUS, options.seconds), Load("weighted", VUS, options.seconds)
    turns = [
        (f"{tool.name}, {load.flow}", tool, load)
        for load in (ten, weighted)
        for tool in (HYPERSCALE, LOCUST)
    ]
    taken = race(target, turns, options.rounds)
    return Part(
        [
            taken.compare("ten calls in one step", turns[0][0], turns[1][0], Bound(12)),
            taken.compare("weighted tasks", turns[2][0], turns[3][0], Bound(12)),
        ],
        detail=taken.report(),
    )


def six(target: Target, options: argparse.Namespace) -> Part:
    turns = [
        ("six workflows", HYPERSCALE, Load("six", SIX_VUS, options.seconds)),
        ("one workflow", HYPERSCALE, Load("get", SIX_VUS, options.seconds)),
    ]
    taken = race(target, turns, options.rounds)
    what = f"six workflows at once, {SIX_VUS} VUs, one core"
    row = taken.compare(what, "six workflows", "one workflow", Bound(0.95))
    return Part([row], detail=taken.report())


def footprint(target: Target, options: argparse.Namespace) -> Part:
    return Part(figures=memory.per_vu(target, MANY_VUS, KIB_PER_VU_MAX[target.scheme]))


def soak(target: Target, options: argparse.Namespace) -> Part:
    if not options.minutes:
        return Part()
    return Part(figures=[memory.over_time(target, options.minutes)])


def enter(target: Target, options: argparse.Namespace) -> Part:
    rounds = options.rounds * 2
    return Part(figures=[startup.first_request(rounds), startup.imports(rounds)])


def truth(target: Target, options: argparse.Namespace) -> Part:
    return Part(figures=accuracy.figures())


PARTS: dict[str, tuple[str, Callable[[Target, argparse.Namespace], Part]]] = {
    "get": ("GET against its peers", get),
    "flow": ("A two-step flow against its peers", flow),
    "sizes": ("Bodies of 1 KB and 100 KB", sizes),
    "post": ("POST of 10 KB against its peers", post),
    "gzip": ("A compressed body against its peers", gzip),
    "fresh": ("A new connection for each request", fresh),
    "growth": ("From 64 to 5,000 virtual users", growth),
    "memory": ("Memory of a virtual user", footprint),
    "before": ("One request an iteration, against the code before", against_before),
    "view": ("The price of the live view", view),
    "tasks": ("Ten calls in a step and weighted tasks against Locust", tasks),
    "six": ("Six workflows on one core", six),
    "soak": ("Memory over time", soak),
    "startup": ("From enter to the first request", enter),
    "accuracy": ("Accuracy", truth),
}
# The embedded target has no such pages.
NEED_NGINX = {"sizes", "post", "gzip"}
