"""Members as real processes on loopback, and the questions a test asks them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hyperscale.nodes.member.queries import QUERIES, AskMembers, AskStatus, Members, Status
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.wire.certificates import CertificateIdentity, Credentials, Pem, make_node
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Refused
from hyperscale.wire.handshake import PROTOCOL, Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.peer import Peer

DEADLINE_S = 30.0
ASK_EVERY_S = 0.15  # a member answers one client a hundred times in ten seconds
CLUSTER, ENV, DC = "dev", "test", "local"
# A few times faster than life; suspicion 2.5 to 5 s, long enough to be seen on a busy machine.
FAST = (
    "membership.probe_interval_s=0.25",
    "membership.probe_timeout_s=0.12",
    "membership.suspicion_mult=10",
    "membership.suspicion_max_ratio=2",
    "membership.gossip_interval_s=0.05",
    "membership.reconnect_interval_s=0.5",
    "membership.seed_retry_s=0.3",
    "election.heartbeat_interval_s=0.1",
    "election.lease_s=1.0",
    "election.election_delay_min_s=1.0",
    "election.election_delay_max_s=2.0",
    "election.ballot_timeout_s=0.5",
    "election.ballot_resend_s=0.1",
)


def until(condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """Wait for a condition of another process, which has no event to wait for."""
    end = time.monotonic() + deadline_s
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {deadline_s:g} s in vain for: {what}"
        time.sleep(ASK_EVERY_S)
    return found


def write_certificate(
    folder: Path,
    authority: Pem,
    name: str,
    role: str = "probe",
    cluster: str = CLUSTER,
    env: str = ENV,
    days: float = 90,
) -> None:
    identity = CertificateIdentity(role, cluster, env, DC)
    made = make_node(authority, identity, name, days=days)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.pem").write_bytes(authority.certificate)
    (folder / f"{name}.pem").write_bytes(made.certificate)
    (folder / f"{name}-key.pem").write_bytes(made.key)


class MemberProcess:
    """`hyperscale node` with its log, which is also how a test learns its address."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *flags: str,
        bind: str = "127.0.0.1:0",
        program: Sequence[str] = ("-m", "hyperscale"),
    ) -> None:
        self.name = name
        words = ["node", "--id", name, "--bind", bind, "--dc", DC, "--data", folder / "data" / name]
        numbers = [word for setting in FAST for word in ("--set", setting)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HYPERSCALE_")}
        self._process = subprocess.Popen(
            [sys.executable, *program, *map(str, words), *numbers, *flags],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self._lines.extend(iter(self._process.stderr.readline, ""))

    @property
    def text(self) -> str:
        return "".join(self._lines)

    @property
    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in list(self._lines) if line.startswith("{")]

    def events(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.said if line["event"] == event]

    def saying(self, event: str) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            assert self._process.poll() is None or self.events(event), self.text
            return self.events(event)

        line: dict[str, Any] = until(found, f"{event!r} from {self.name}")[0]
        return line

    @property
    def address(self) -> str:
        return str(self.saying("ready")["address"])

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def exit_code(self) -> int:
        code = self._process.wait(DEADLINE_S)
        self._listener.join(DEADLINE_S)
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self.exit_code()


class Observer:
    """A client that asks members over the wire."""

    def __init__(
        self,
        credentials: Credentials | None,
        role: str = "client",
        protocol: tuple[int, int] = PROTOCOL,
    ) -> None:
        self._credentials = credentials
        identity = Identity(
            node_id="observer",
            incarnation=0,
            role=role,
            cluster_id=CLUSTER,
            environment_id=ENV,
            datacenter=DC,
        )
        self._introduction = Introduction(identity, protocol=protocol)

    def members(self, address: str) -> Members:
        return self._ask(address, AskMembers("test"), Members)

    def status(self, address: str) -> Status:
        return self._ask(address, AskStatus("test"), Status)

    def _ask(self, address: str, question: object, answer: type[Any]) -> Any:
        host, _, port = address.rpartition(":")

        async def ask() -> Any:
            with TemporaryDirectory() as nothing:
                async with RealHost("observer", nothing) as world:
                    endpoint = Endpoint(
                        world,
                        self._introduction,
                        QUERIES,
                        credentials=self._credentials,
                        plaintext="loopback",
                    )
                    peer = Peer(endpoint, Address(host, int(port)))
                    async with asyncio.timeout(DEADLINE_S):
                        while True:
                            try:
                                return await peer.request(question, answer, DEADLINE_S)
                            except Refused as refusal:
                                if refusal.retry_after_s is None:
                                    raise
                                await asyncio.sleep(refusal.retry_after_s)

        return asyncio.run(ask())
