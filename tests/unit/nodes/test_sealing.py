"""What managers keep for workers: unreadable without the cluster secret, whole with it."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.engine.messages import Stamped
from hyperscale.errors import RunFailed
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.nodes.protocol.parts import DispatchPart
from hyperscale.nodes.protocol.sealing import UNSEALED, Sealing
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import ClosedVUs

FACTS = WorkflowFacts(name="W", is_test=True, priority="auto", load=ClosedVUs(1, 1.0))
BODY = Body(
    workflows=(FACTS,),
    source=b"print(TOPSECRET)",
    overrides=b"TOPSECRET",
    env={"API_KEY": "TOPSECRET"},
    secrets=("API_KEY",),
)
OLD, NEW = "correct horse battery staple", "another horse, another staple"


def order_of(body: Body, context: dict[str, Stamped] | None = None) -> DispatchPart:
    return DispatchPart(
        part=Part("j", "W", 0),
        fence=Fence(1),
        term=1,
        facts=FACTS,
        source=body.source,
        overrides=body.overrides,
        first_core=0,
        cores=1,
        total_cores=1,
        env=body.env,
        secrets=body.secrets,
        sealed=body.sealed,
        context=context or {},
        used={"Before": context or {}},
    )


def test_a_worker_gets_what_the_client_sent_and_nobody_reads_it_on_the_way() -> None:
    values = {"token": Stamped(7, 0, b"TOPSECRET")}
    kept = Sealing(OLD).seal_body(BODY)
    held = Sealing(OLD).seal_values(values)
    assert b"TOPSECRET" not in msgspec.msgpack.encode((kept, held))
    assert kept.workflows == BODY.workflows, "managers decide by the facts"
    opened = Sealing(OLD).open_order(order_of(kept, held))
    assert opened == order_of(BODY, values)


def test_the_same_twice_looks_different() -> None:
    sealing = Sealing(OLD)
    assert sealing.seal_body(BODY).sealed != sealing.seal_body(BODY).sealed


def test_while_the_secret_changes_both_are_understood() -> None:
    order = order_of(Sealing(OLD).seal_body(BODY))
    assert Sealing(NEW, OLD).open_order(order).env == BODY.env
    with pytest.raises(RunFailed, match="another cluster secret") as refused:
        Sealing(NEW).open_order(order)
    assert "--previous-secret-file" in refused.value.hint


def test_what_was_changed_does_not_open() -> None:
    sealed = Sealing(OLD).seal_body(BODY).sealed
    broken = msgspec.structs.replace(BODY, sealed=sealed[:-1] + bytes([sealed[-1] ^ 1]))
    with pytest.raises(RunFailed):
        Sealing(OLD).open_order(order_of(broken))


def test_a_cluster_without_a_secret_keeps_it_as_it_came() -> None:
    assert UNSEALED.seal_body(BODY) == BODY
    assert UNSEALED.open_order(order_of(BODY)) == order_of(BODY)


def test_values_open_beside_a_body_that_was_kept_before_there_was_a_secret() -> None:
    values = {"token": Stamped(7, 0, b"\x80\x05TOPSECRET")}
    order = order_of(BODY, Sealing(OLD).seal_values(values))
    assert Sealing(OLD).open_order(order) == order_of(BODY, values)
    assert Sealing(OLD).open_order(order_of(BODY, values)) == order_of(BODY, values)
    with pytest.raises(RunFailed, match="another cluster secret"):
        UNSEALED.open_order(order)
