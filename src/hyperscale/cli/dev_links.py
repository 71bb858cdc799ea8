"""How far the datacenters of a dev cluster are from each other, as people write it:

    80ms                       every two of them are a round trip of 80 ms apart
    eu-us=80ms, eu-ap=160ms    us and ap, of which nothing is said, as far as the way over eu
    eu>us=200ms                one way: what eu sends takes 200 ms
    eu=cut                     nothing passes to or from eu; eu-us=cut, eu>us=cut
    eu-us/udp=cut              datagrams only; /tcp streams only

What stands further behind wins. The same text is in a file that may be changed while all runs.
"""

from __future__ import annotations

import re
from itertools import permutations
from math import inf, isinf
from typing import Final

from hyperscale.errors import BadInput
from hyperscale.workload.durations import format_duration, parse_duration

PROTOCOLS: Final = ("tcp", "udp")
HINT = "such as --wan 80ms, --wan eu-us=80ms,eu-ap=160ms, or eu-us=cut in the file"
_NAME = r"[^\s<>=/,-]+"
_ITEM = re.compile(
    rf"(?:(?P<one>{_NAME})(?:(?P<way>[->])(?P<other>{_NAME}))?(?:/(?P<protocol>tcp|udp))?\s*=)?"
    r"\s*(?P<value>[^=<>/-]+)"
)
Way = tuple[str, str, str]  # from, to, protocol


def names_in(text: str) -> list[str]:
    """The datacenters that are named, in the order of their mention. Raises BadInput."""
    named = (match[name] for match in _items(text) for name in ("one", "other"))
    return list(dict.fromkeys(name for name in named if name is not None))


class Links:
    """Raises BadInput."""

    def __init__(self, text: str, names: list[str]) -> None:
        self._delays: dict[Way, float] = {}
        self._cuts: set[Way] = set()
        for unknown in [name for name in names_in(text) if name not in names]:
            raise BadInput(f"--wan: there is no datacenter {unknown!r}, only {', '.join(names)}")
        for match in _items(text):
            self._take(match, names)
        for source, target in permutations(names, 2):
            if not self._is_told(source, target):
                self._delays |= self._derived(names, source, target)

    def delay_s(self, source: str, target: str, protocol: str) -> float | None:
        """One way; None: nothing passes."""
        way = source, target, protocol
        return None if way in self._cuts else self._delays.get(way, 0.0)

    def __str__(self) -> str:
        """Round trips, and what is cut."""
        told = []
        for source, target, protocol in self._delays:
            if protocol == "tcp" and source < target:
                ways = ((source, target, protocol), (target, source, protocol))
                round_s = sum(self._delays[way] for way in ways)
                told.append(f"{source}-{target} {format_duration(round_s)}")
        told += [f"{source}>{target}/{protocol} cut" for source, target, protocol in self._cuts]
        return ", ".join(sorted(told))

    def _take(self, match: re.Match[str], names: list[str]) -> None:
        value, one, other = match["value"].strip(), match["one"], match["other"]
        one_way = match["way"] == ">"
        pairs = [
            pair
            for pair in permutations(names, 2)
            if (one is None or one in pair) and (other is None or other in pair)
        ]
        if one_way:
            pairs = [(one, other)]
        protocols = (match["protocol"],) if match["protocol"] else PROTOCOLS
        ways = [(*pair, protocol) for pair in pairs for protocol in protocols]
        if value == "cut":
            self._cuts.update(ways)
            return
        delay_s = parse_duration(value, "--wan") / (1 if one_way else 2)
        self._cuts.difference_update(ways)
        self._delays.update(dict.fromkeys(ways, delay_s))

    def _is_told(self, source: str, target: str) -> bool:
        return all((source, target, protocol) in self._delays for protocol in PROTOCOLS)

    def _derived(self, names: list[str], source: str, target: str) -> dict[Way, float]:
        """As far as the shortest way over one or more others."""
        far = dict.fromkeys(names, inf) | {source: 0.0}
        for _ in names:
            for one, other in permutations(names, 2):
                told = self._delays.get((one, other, "tcp"), inf)
                far[other] = min(far[other], far[one] + told)
        if isinf(far[target]):
            raise BadInput(f"--wan does not say how far {target} is from {source}", HINT)
        return {(source, target, protocol): far[target] for protocol in PROTOCOLS}


def _items(text: str) -> list[re.Match[str]]:
    found = []
    lines = (line.partition("#")[0] for line in text.splitlines())
    for item in filter(None, (item.strip() for line in lines for item in line.split(","))):
        match = _ITEM.fullmatch(item)
        if match is None or (match["value"].strip() == "cut" and match["one"] is None):
            raise BadInput(f"--wan cannot be read at {item!r}", HINT)
        if match["one"] is not None and match["one"] == match["other"]:
            raise BadInput(f"--wan: {item!r} names one datacenter twice", HINT)
        found.append(match)
    return found
