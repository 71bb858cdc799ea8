"""What lies between two hosts: how long it takes, what gets lost, and who cannot hear whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

Traffic = Literal["all", "datagrams", "streams", "calls"]
"""`calls` are the streams that one side has opened, whichever way their bytes go: what a firewall
lets pass in one direction only."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Base, plus uniform jitter, plus now and then an exponential tail."""

    base_s: float = 0.0002  # one switch in a rack
    jitter_s: float = 0.0003
    tail_probability: float = 0.0
    tail_mean_s: float = 0.0

    def sample(self, random: Random) -> tuple[float, bool]:
        """Seconds, and whether the tail was hit."""
        seconds = self.base_s + self.jitter_s * random.random()
        if self.tail_probability and random.random() < self.tail_probability:
            return seconds + random.expovariate(1.0) * self.tail_mean_s, True
        return seconds, False


@dataclass(frozen=True, slots=True)
class Link:
    """One direction. Reordering comes from latency: each datagram draws its own."""

    latency: Latency = Latency()
    loss: float = 0.0
    duplicate: float = 0.0
    bytes_per_s: float | None = None  # None: sending takes no time


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Nothing gets from `sources` to `targets`, and with `both` not back either. `None` is
    everyone else. A cut that `holds` keeps datagrams until it heals instead of dropping them."""

    kind: str
    sources: frozenset[str] | None
    targets: frozenset[str] | None
    both: bool = True
    holds: bool = False
    traffic: Traffic = "all"

    def stops_datagram(self, source: str, target: str) -> bool:
        return self.traffic in ("all", "datagrams") and self.blocks(source, target)

    def stops_stream(self, source: str, target: str, caller: str) -> bool:
        """Bytes from one to the other of a stream that `caller`, one of the two, has opened."""
        if self.traffic == "calls":
            return self.blocks(caller, target if caller == source else source)
        return self.traffic in ("all", "streams") and self.blocks(source, target)

    def blocks(self, source: str, target: str) -> bool:
        return self._one_way(source, target) or (self.both and self._one_way(target, source))

    def _one_way(self, source: str, target: str) -> bool:
        sources, targets = self.sources, self.targets
        if sources is None:
            assert targets is not None
            return target in targets and source not in targets
        return source in sources and (
            target not in sources if targets is None else target in targets
        )


def partition(side: Iterable[str], other: Iterable[str] | None = None, kind: str = "") -> Cut:
    """Two sides that cannot talk; `other` left out means everyone not on the first side."""
    return Cut(
        kind or "partition", frozenset(side), None if other is None else frozenset(other), both=True
    )


def one_way(
    sources: Iterable[str] | None, targets: Iterable[str] | None = None, kind: str = ""
) -> Cut:
    """`targets` no longer hear `sources`, but still speak to them."""
    return Cut(
        kind or "one-way",
        None if sources is None else frozenset(sources),
        None if targets is None else frozenset(targets),
        both=False,
    )


def only(traffic: Traffic, cut: Cut, kind: str = "") -> Cut:
    """The same cut for one sort of traffic, which its name tells."""
    return replace(cut, kind=kind or f"{cut.kind} of {traffic}", traffic=traffic)


def clog(host: str) -> Cut:
    """Everything to and from a host waits until the clog is gone."""
    return Cut("clog", frozenset((host,)), None, both=True, holds=True)
