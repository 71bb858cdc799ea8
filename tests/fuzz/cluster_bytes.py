"""Datagrams of somebody who has the secret: what is inside the seal, and what becomes of it.

The first byte chooses: raw bytes to a sealer, a kind of sealed datagram, a word to membership or to
an election. Both cores keep what they are told from one input to the next, as a node does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from hyperscale.cluster.election import Durable, Election, ElectionSettings, list_digest
from hyperscale.cluster.election import messages as elections
from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import Membership, MembershipConfig
from hyperscale.cluster.membership import messages as members
from hyperscale.wire.sealed import Kind, Sealer

SECRET = "a secret for fuzzing only 4711"
CLUSTER = "c/e"
VOTERS = ("m1", "m2", "m3")
FUZZED, FRIEND = Sealer("m1", SECRET), Sealer("m2", SECRET)
_HEAD = members.header(CLUSTER)
_envelopes = msgspec.msgpack.Decoder(elections.Envelope)


def node(name: str) -> Node:
    return Node(name, 1, "manager", "d", ("127.0.0.1", 1), ("127.0.0.1", 1))


class Cores:
    def __init__(self) -> None:
        self.now = 1.0
        self.membership = Membership(
            node("m1"), MembershipConfig(cluster=CLUSTER), random.Random(1)
        )
        self.membership.start(self.now)
        self.membership.persisted(self.now, 100)
        self.election = Election("m1", VOTERS, ElectionSettings(), random.Random(1), Durable())
        self.election.start(self.now)

    def tick(self) -> None:
        self.now += 0.01
        self.membership.tick(self.now)
        self.election.tick(self.now)


CORES = Cores()


def feed_datagram(data: bytes) -> None:
    if not data:
        return
    what, data = data[0] % 6, data[1:]
    CORES.tick()
    if what < len(Kind):
        if len(data) <= FRIEND.payload_bytes_max:
            FUZZED.open(FRIEND._sealed(Kind(what), data))
    elif what == 3:
        FUZZED.open(data)
    elif what == 4:
        for speaker in (None, "m2"):
            with suppress(members.Refused):
                CORES.membership.receive(CORES.now, data, speaker)
            with suppress(members.Refused):
                CORES.membership.exchanged(CORES.now, data, speaker)
    else:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            said = _envelopes.decode(data)
            if said.sender in VOTERS:
                CORES.election.receive(CORES.now, said.sender, said.message)


def datagrams() -> Iterator[bytes]:
    for kind in Kind:
        yield bytes((kind,)) + bytes(16)
    yield b"\x03" + FRIEND.seal(b"hello")
    me = members.Sender(node("m2"))
    for word in (
        members.Ping(me, 1, "m1", [members.Alive(node("b")), members.Suspect("m1", 1, ("m2",))]),
        members.Ack(me, 1, []),
        members.PingRequest(me, 3, "b", ("127.0.0.1", 5), 1.0, []),
        members.Gossip(me, [members.Dead("b", 1, "m2"), members.Left("b", 2)]),
        members.Summary(me, tuple(range(32))),
    ):
        yield b"\x04" + members.encode(_HEAD, word)
    for message in (
        elections.PreVoteRequest(1, 1),
        elections.PreVoteReply(0, 1, True),
        elections.VoteRequest(1, 0),
        elections.Heartbeat(1, 1),
        elections.Handover(1),
    ):
        envelope = elections.Envelope("g", "m2", list_digest(VOTERS), message)
        yield b"\x05" + msgspec.msgpack.encode(envelope)
