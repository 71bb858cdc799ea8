"""A host and port to talk to, with or without TLS, and its addresses in turn."""

from __future__ import annotations

from collections.abc import Sequence

from hyperscale.clients.net.attempts import Attempts, interleaved
from hyperscale.clients.net.hosts import HostMap


class Endpoint:
    """`place` is where that is, by the `hosts` of the options; `peer` what to connect to."""

    __slots__ = (
        "_resting",
        "_turn",
        "authority",
        "host",
        "peer",
        "place",
        "port",
        "secure",
        "server_name",
    )

    def __init__(
        self, host: str, port: int, secure: bool, server_name: str | None, hosts: HostMap
    ) -> None:
        self.host = host
        self.port = port
        self.secure = secure
        self.server_name = server_name or host
        self.authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.place = self.peer = hosts.place(host, port)
        self._turn = 0
        self._resting: dict[str, float] = {}

    def attempts(self, addresses: Sequence[str]) -> Attempts:
        """How to connect to one of the peer's addresses; each call begins with the next one."""
        self._turn += 1
        return Attempts(interleaved(addresses, self._turn), self._resting)
