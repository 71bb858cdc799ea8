"""SRV lookups on a host: one datagram to a name server, the next server if it does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hyperscale.cluster.discovery.srv import LookupFailed, Services, decode_answer, encode_query
from hyperscale.runtime.host import Address, Host

# Each server is asked this often before the next one; the caller's timeout ends it all.
PATIENCE_S = 0.5


class ServiceLookup:
    def __init__(self, host: Host, nameservers: Sequence[Address]) -> None:
        self._host = host
        self._nameservers = list(nameservers)

    async def find(self, name: str) -> tuple[list[Address], float]:
        """All addresses of all targets, and how long that is good for. Raises LookupFailed; runs
        until somebody answers, so give it a timeout."""
        if not self._nameservers:
            raise LookupFailed("no name server is configured")
        services = await self._ask(name)
        found: list[Address] = []
        for service in services.records:
            try:
                found += await self._host.network.resolve(service.target, service.port)
            except OSError:
                continue  # one stale target must not hide the others
        if not found:
            raise LookupFailed("none of its targets has an address")
        return list(dict.fromkeys(found)), services.lifetime_s

    async def _ask(self, name: str) -> Services:
        """One after the other, until one answers; a failure that all of them tell is raised."""
        while True:
            failures: list[LookupFailed] = []
            for server in self._nameservers:
                try:
                    return await self._ask_one(server, name)
                except LookupFailed as failure:
                    failures.append(failure)
                except TimeoutError:
                    continue
            if failures:
                raise failures[0]

    async def _ask_one(self, server: Address, name: str) -> Services:
        number = self._host.random.getrandbits(16)
        answer: asyncio.Future[Services] = asyncio.get_running_loop().create_future()

        def received(data: bytes, source: Address) -> None:
            if source != server or answer.done():
                return
            try:
                services = decode_answer(data, number, name)
            except LookupFailed as failure:
                answer.set_exception(failure)
                return
            if services is not None:
                answer.set_result(services)

        anywhere = Address("::" if ":" in server.host else "0.0.0.0", 0)
        port = await self._host.network.bind(anywhere, received)
        try:
            port.send(server, encode_query(number, name))
            async with asyncio.timeout(PATIENCE_S):
                return await answer
        finally:
            port.close()
