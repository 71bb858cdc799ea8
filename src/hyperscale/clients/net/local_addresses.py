"""The addresses of this machine that connections go out from, in rotation.

One address has some 28,000 ports towards the same target, and servers limit clients by address.
"""

from __future__ import annotations

import errno
import ipaddress
import itertools
import socket
from collections.abc import Iterable, Iterator, Sequence

from hyperscale.clients.net.failures import Failure
from hyperscale.workload.results import Outcome

# Linux then chooses the port with the target in view: the same port may lead to several targets.
NO_PORT: int | None = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", None)


class LocalAddresses:
    """`next(family)` is where the next connection goes out from; None: the system decides."""

    __slots__ = ("_turns",)

    def __init__(self, texts: Iterable[str]) -> None:
        """Addresses, or networks such as 10.0.0.0/28, without their first and last address."""
        found: dict[int, list[str]] = {}
        for text in texts:
            network = ipaddress.ip_network(text, strict=False)
            family = socket.AF_INET if network.version == 4 else socket.AF_INET6
            found.setdefault(family, []).extend(map(str, network.hosts()))
        self._turns: dict[int, Iterator[str]] = {
            family: itertools.cycle(dict.fromkeys(addresses)) for family, addresses in found.items()
        }

    def __bool__(self) -> bool:
        return bool(self._turns)

    def next(self, family: int) -> str | None:
        turn = self._turns.get(family)
        return next(turn) if turn is not None else None

    def bind(self, made: socket.socket) -> None:
        """Raises Failure for an address that this machine does not have."""
        address = self.next(made.family)
        if address is None:
            return
        if NO_PORT is not None:
            made.setsockopt(socket.IPPROTO_IP, NO_PORT, 1)
        try:
            made.bind((address, 0))
        except OSError as error:
            text = f"{address} (http.local_addresses) cannot be used: {error.strerror}"
            if error.errno == errno.EADDRNOTAVAIL:
                text = f"{address} (http.local_addresses) is not an address of this machine"
            raise Failure(Outcome.REFUSED, text) from error

    def usable(self, addresses: Sequence[str], where: str) -> Sequence[str]:
        """Those of a target that can be reached from here: of the same family as ours.

        Raises Failure when there is none: a connection must not go out from anywhere else.
        """
        if not self:
            return addresses
        usable = [
            address
            for address in addresses
            if (socket.AF_INET6 if ":" in address else socket.AF_INET) in self._turns
        ]
        if not usable:
            version = "IPv6" if socket.AF_INET6 in self._turns else "IPv4"
            text = f"{where} has no {version} address, and http.local_addresses has no other"
            raise Failure(Outcome.REFUSED, text)
        return usable
