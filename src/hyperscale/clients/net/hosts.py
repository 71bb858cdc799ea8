"""Host patterns of the options: which of them a name meets, and where it is mapped to.

`shop.example` is that name, `*.shop.example` every name below it, however deep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hyperscale.clients.net.host_names import ascii_host
from hyperscale.workload.http_options import split_port


def meets(host: str, patterns: Iterable[str]) -> bool:
    """Whether the host is one of them or below one of them; all are ASCII in lower case."""
    return any(
        host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
        for pattern in patterns
    )


class HostMap:
    """`hosts` of the options: the address to connect to instead of looking a name up.

    The most exact entry wins: a name with its port, the name, then the longest pattern, each with
    the port before without.
    """

    __slots__ = ("_exact", "_patterns")

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self._exact: dict[tuple[str, int], tuple[str, int]] = {}
        patterns: list[tuple[str, int, tuple[str, int]]] = []
        for name, address in hosts.items():
            host, port = split_port(name)
            to, to_port = split_port(address)
            place = (to, int(to_port or 0))
            if host.startswith("*."):
                patterns.append((ascii_pattern(host)[1:], int(port or 0), place))
            else:
                self._exact[ascii_pattern(host), int(port or 0)] = place
        patterns.sort(key=lambda entry: (len(entry[0]), entry[1] > 0), reverse=True)
        self._patterns = tuple(patterns)

    def place(self, host: str, port: int) -> tuple[str, int]:
        """Where to connect to for this host and port: there itself when nothing is said."""
        found = self._exact.get((host, port)) or self._exact.get((host, 0))
        if found is None:
            found = next(
                (
                    place
                    for ending, only_port, place in self._patterns
                    if host.endswith(ending) and only_port in (0, port)
                ),
                None,
            )
        if found is None:
            return host, port
        return found[0], found[1] or port


def ascii_pattern(pattern: str) -> str:
    prefix, name = ("*.", pattern[2:]) if pattern.startswith("*.") else ("", pattern)
    return prefix + ascii_host(name, pattern)
