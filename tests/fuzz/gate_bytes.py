"""What a gate says to another gate about the jobs they hold together.

The replicas keep what they are told from one input to the next, as a gate does. What contradicts
an invariant is refused with a sentence; a gate goes on after it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.ledger.vsr import VsrSettings
from hyperscale.ledger.vsr.core import Save, Send
from hyperscale.ledger.vsr.messages import (
    Bundle,
    DoViewChange,
    Entry,
    GetState,
    Heartbeat,
    HeartbeatOk,
    Item,
    NewState,
    Prepare,
    PrepareOk,
    Recovery,
    StartView,
    StartViewChange,
    decode_bundle,
    encode,
)
from hyperscale.ledger.vsr.replica_set import OfReplica, ReplicaSet

GATES = ("g1", "g2", "g3")
ENTRY = Entry(1, "created", b"job")


class Told:
    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.now = 1.0
        self.node = ReplicaSet("g1", 0.0, VsrSettings(), random.Random(1))
        self.node.create(0.0, "j1", GATES)


TOLD = Told()


def feed_ledger(data: bytes) -> None:
    TOLD.now += 0.5
    try:
        bundle = decode_bundle(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    if len(TOLD.node.replicas) > 100:
        TOLD.begin()
    effects: list[object] = []
    with suppress(InvariantBroken, ValueError):
        effects += TOLD.node.receive(TOLD.now, "g2", bundle)
    effects += TOLD.node.tick(TOLD.now)
    for one in effects:
        match one:
            case OfReplica(effect=Send(message=message)):
                encode(message)
            case OfReplica(effect=Save(record=record)):
                encode(record)


def bundles() -> Iterator[bytes]:
    for message in (
        Prepare(0, 0, 0, (ENTRY,), 1),
        PrepareOk(0, 0, 1, 1),
        StartViewChange(0, 1, True),
        DoViewChange(0, 1, 0, (ENTRY,), 1),
        StartView(0, 1, (ENTRY,), 1),
        GetState(0, 0, 0),
        NewState(0, 0, GATES, 0, (ENTRY,), 1),
        Recovery(0, 0, 7),
    ):
        yield encode(Bundle((Item("j1", GATES, message), Item("j2", GATES, message))))
    yield encode(Bundle((), Heartbeat(1, 1, (0,)), HeartbeatOk(1, 1, (), 2)))
