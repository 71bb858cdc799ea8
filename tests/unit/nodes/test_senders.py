"""The table of who may send what: complete, and not wider than it need be."""

from __future__ import annotations

import pytest

from hyperscale.nodes.gate.ledger import LEDGER
from hyperscale.nodes.member.bootstrap import PROBES
from hyperscale.nodes.member.exchanges import EXCHANGES
from hyperscale.nodes.member.queries import QUERIES
from hyperscale.nodes.protocol.datacenters import DATACENTERS
from hyperscale.nodes.protocol.jobs import JOBS
from hyperscale.nodes.protocol.parts import PARTS
from hyperscale.nodes.protocol.records import RECORDS
from hyperscale.nodes.protocol.senders import MAY_SEND, senders_to
from hyperscale.wire.identity import ROLES
from hyperscale.wire.messages import Registry

ALL = Registry()
for _more in (JOBS, PARTS, RECORDS, QUERIES, PROBES, EXCHANGES, LEDGER, DATACENTERS):
    ALL.include(_more)
PEOPLE = ("submit.", "steer.job", "ask.job", "ask.results", "ask.workers", "watch.", "drain.worker")


@pytest.mark.parametrize("kind", list(ALL), ids=lambda kind: kind.name)
def test_every_kind_has_a_row(kind) -> None:  # type: ignore[no-untyped-def]
    assert kind.name in MAY_SEND, f"say in nodes/protocol/senders.py who may send {kind.name}"


def test_every_row_is_of_a_kind_and_names_roles() -> None:
    assert set(MAY_SEND) == {kind.name for kind in ALL}
    assert {role for roles in MAY_SEND.values() for role in roles} <= set(ROLES)


def test_a_worker_asks_nothing_about_jobs() -> None:
    theirs = {name for name, roles in MAY_SEND.items() if "worker" in roles}
    assert not [name for name in theirs if name.startswith(PEOPLE)]


def test_a_client_says_nothing_of_parts_and_records() -> None:
    theirs = {name for name, roles in MAY_SEND.items() if "client" in roles}
    known = {kind.name for kind in (*JOBS, *QUERIES, *DATACENTERS)}
    assert theirs <= known


def test_managers_of_a_datacenter_ask_a_gate_nothing_about_jobs() -> None:
    theirs = {name for name, roles in senders_to("gate").items() if "manager" in roles}
    assert not [name for name in theirs if name.startswith(PEOPLE)]
    assert senders_to("gate")["submit.job"] == {"client", "gate"}
    assert senders_to("manager") is MAY_SEND
