"""SRV lookups over real datagrams: whoever of the name servers can answer is enough."""

from __future__ import annotations

import asyncio
import gc
import struct
from pathlib import Path

import pytest

from hyperscale.cluster.discovery.srv import LookupFailed
from hyperscale.nodes.member.service_lookup import ServiceLookup
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost, run

NAME = "_hyperscale._tcp.example"
MUTE, FAILING, WELL = "mute", "failing", "well"


class NameServer(asyncio.DatagramProtocol):
    def __init__(self, manner: str) -> None:
        self._manner = manner

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.DatagramTransport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        number, question = data[:2], data[12:-11]  # without the record of EDNS
        if self._manner == FAILING:
            head = struct.pack(">HHHHH", 0x8182, 1, 0, 0, 0)
            self._transport.sendto(number + head + question, addr)
        elif self._manner == WELL:
            service = struct.pack(">HHH", 0, 0, 7_000) + b"\x09localhost\x00"
            record = b"\xc0\x0c" + struct.pack(">HHIH", 33, 1, 30, len(service)) + service
            head = struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
            self._transport.sendto(number + head + question + record, addr)


async def listening(manner: str) -> Address:
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameServer(manner), local_addr=("127.0.0.1", 0)
    )
    return Address(*transport.get_extra_info("sockname")[:2])


@pytest.mark.parametrize("manners", [[WELL], [MUTE, WELL], [FAILING, WELL], [WELL, FAILING]])
def test_one_that_is_well_is_enough(tmp_path: Path, manners: list[str]) -> None:
    async def main() -> None:
        servers = [await listening(manner) for manner in manners]
        async with RealHost("a", tmp_path) as host:
            found, _ = await ServiceLookup(host, servers).find(NAME)
            assert {address.port for address in found} == {7_000}

    run(main())


def test_what_all_of_them_say_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        servers = [await listening(manner) for manner in (FAILING, MUTE)]
        async with RealHost("a", tmp_path) as host:
            with pytest.raises(LookupFailed):
                await ServiceLookup(host, servers).find(NAME)

    run(main())


def test_a_lookup_leaves_no_port_behind(tmp_path: Path) -> None:
    async def main() -> None:
        server = await listening(WELL)
        async with RealHost("a", tmp_path) as host:
            for _ in range(20):
                await ServiceLookup(host, [server]).find(NAME)
            await asyncio.sleep(0)
            gc.collect()
            assert len(host.network._ports) <= 1

    run(main())
