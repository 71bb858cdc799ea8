"""Bytes over TCP and UDP: a line protocol, and datagrams.

hyperscale demo --serve                  # echoes TCP and UDP at the port after its own
hyperscale run examples/tcp_udp.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import TCPResponse, UDPResponse

ECHO = os.environ.get("ECHO", "127.0.0.1:8001")


class Echo(Workflow):
    vus = 10
    duration = "10s"

    @step()
    async def line(self) -> TCPResponse:
        answer = await self.client.tcp.request(f"tcp://{ECHO}", "hello\n", until="\n", timeout="2s")
        if answer.ok and answer.text() != "hello\n":
            answer.fail(f"another line came back: {answer.text()!r}")
        return answer

    @step()
    async def datagram(self) -> UDPResponse:
        return await self.client.udp.request(f"udp://{ECHO}", b"ping", timeout="2s")
