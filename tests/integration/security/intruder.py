"""Somebody who holds the certificate of one node of a fleet and says whatever it likes with it."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from hyperscale.engine.source import FileSource
from hyperscale.nodes.client.submission import new_job_id, prepare
from hyperscale.nodes.member.bootstrap import PROBES
from hyperscale.nodes.member.exchanges import EXCHANGES
from hyperscale.nodes.member.queries import QUERIES
from hyperscale.nodes.protocol.jobs import JOBS, SubmitJob
from hyperscale.nodes.protocol.parts import PARTS
from hyperscale.nodes.protocol.records import RECORDS
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.wire.certificates import Credentials
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Registry
from hyperscale.wire.peer import Peer
from tests.integration.cluster.fleet import CLUSTER, DC, ENV, Fleet

T = TypeVar("T")

ALL = Registry()
for _more in (JOBS, PARTS, RECORDS, QUERIES, PROBES, EXCHANGES):
    ALL.include(_more)


def speaking(
    fleet: Fleet,
    name: str,
    role: str,
    talk: Callable[[Peer], Awaitable[T]],
    *,
    to: str = "m1",
    incarnation: int = 1,
    kinds: Registry = ALL,
) -> T:
    """What comes of `talk` with a node, over the certificate of `name`."""

    async def connected() -> T:
        async with RealHost(name, os.devnull) as host:
            certs = fleet.certs
            endpoint = Endpoint(
                host,
                Introduction(
                    Identity(
                        node_id=name,
                        incarnation=incarnation,
                        role=role,
                        cluster_id=CLUSTER,
                        environment_id=ENV,
                        datacenter=DC,
                    )
                ),
                kinds,
                credentials=Credentials(
                    certs / "ca.pem", certs / f"{name}.pem", certs / f"{name}-key.pem"
                ),
            )
            peer = Peer(endpoint, Address("127.0.0.1", fleet[to].port))
            try:
                return await talk(peer)
            finally:
                peer.close()

    return asyncio.run(connected())


def submission(file: Path, requested_by: str = "") -> SubmitJob:
    prepared = prepare(FileSource(str(file)))
    return prepared.message(new_job_id(random.Random()), requested_by=requested_by)
