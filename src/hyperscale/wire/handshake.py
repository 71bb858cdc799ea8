"""The first two frames of a connection: who are you, what do you speak, may you come in.

What is looked at, in this order: certificate, cluster and environment, protocol MAJOR, then the
rest of the greeting, and last the roles. The first three are read from a struct with nothing else
in it, so a stranger's other fields are not even decoded, and a refusal tells nothing but its
reason. What both sides can do is the intersection of their capability sets; the version decides
only whether to talk at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from hyperscale.runtime.host import Stream
from hyperscale.wire.certificates import CertificateIdentity, identity_of, validity_of
from hyperscale.wire.envelope import Verb, pack_plain, unpack
from hyperscale.wire.errors import (
    DeadlineExceeded,
    Disconnected,
    Malformed,
    Reason,
    Refusal,
    Refused,
)
from hyperscale.wire.frames import FrameDecoder
from hyperscale.wire.identity import ROLES, Identity, check_role, check_same_cluster
from hyperscale.wire.messages import decode_plain

PROTOCOL = (1, 2)

# Since which version a node can do what. A name nobody lists is not supported.
INTRODUCED: dict[str, tuple[int, int]] = {
    "cancellation": (1, 0),
    "batched_stats": (1, 1),
    "client_reconnection": (1, 2),
    "fence_tokens": (1, 2),
}

# A greeting is a few hundred bytes; whoever announces more before being known is refused.
GREETING_BYTES_MAX = 16 * 1024
TIMEOUT_S = 5.0
READ_BYTES = 64 * 1024

_encode = msgspec.msgpack.Encoder().encode


class Threshold(msgspec.Struct, frozen=True):
    """The part of a greeting that is read before anything else."""

    cluster_id: str
    environment_id: str
    protocol: tuple[int, int]


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    cluster_id: str
    environment_id: str
    protocol: tuple[int, int]
    node_id: str
    incarnation: int
    role: str
    datacenter: str
    capabilities: list[str] = []
    node_version: str = ""


@dataclass(frozen=True, slots=True)
class Introduction:
    """What we say of ourselves. `gateless`: clients may call this manager directly."""

    identity: Identity
    protocol: tuple[int, int] = PROTOCOL
    capabilities: frozenset[str] = frozenset(INTRODUCED)
    node_version: str = ""
    gateless: bool = False

    def greeting(self) -> bytes:
        mine = self.identity
        return _encode(
            Greeting(
                cluster_id=mine.cluster_id,
                environment_id=mine.environment_id,
                protocol=self.protocol,
                node_id=mine.node_id,
                incarnation=mine.incarnation,
                role=mine.role,
                datacenter=mine.datacenter,
                capabilities=sorted(self.capabilities),
                node_version=self.node_version,
            )
        )


@dataclass(frozen=True, slots=True)
class Session:
    """What two nodes agreed on."""

    peer: Identity
    protocol: tuple[int, int]
    capabilities: frozenset[str]
    node_version: str
    serial: int | None = None
    """Of the certificate that the peer has shown."""


async def call(
    stream: Stream,
    decoder: FrameDecoder,
    mine: Introduction,
    expect_role: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Session:
    """Introduce ourselves to whom we called. Raises Refused, Disconnected or DeadlineExceeded."""
    try:
        async with asyncio.timeout(timeout_s):
            stream.write(pack_plain(Verb.HELLO, body=mine.greeting()))
            verb, body = await _greeting(stream, decoder)
            if verb == Verb.REFUSED:
                said: Refusal = decode_plain(Refusal, body)
                raise Refused(said.kind, said.reason, said.retry_after_s, said.code)
            if verb != Verb.WELCOME:
                raise Malformed(f"verb {verb} in answer to a greeting")
            session = _judge(body, mine, stream.peer_certificate())
            check_role(mine.identity.role, session.peer.role, gateless=True)
            if expect_role is not None and session.peer.role != expect_role:
                raise Refused(
                    "",
                    f"a {expect_role} was expected at {stream.peer}, not a {session.peer.role}",
                    code=Reason.ROLE_NOT_ALLOWED,
                )
            return session
    except TimeoutError:
        raise DeadlineExceeded(f"{stream.peer} did not answer the greeting in time") from None
    except ConnectionError as error:
        raise Disconnected(str(error)) from None


async def answer(
    stream: Stream,
    decoder: FrameDecoder,
    mine: Introduction,
    timeout_s: float = TIMEOUT_S,
    admit: Callable[[Session], None] | None = None,
) -> Session:
    """Judge whoever called us; a refusal, also one that `admit` raises, is sent, then raised."""
    try:
        async with asyncio.timeout(timeout_s):
            verb, body = await _greeting(stream, decoder)
            if verb != Verb.HELLO:
                raise Malformed(f"verb {verb} before a greeting")
            try:
                session = _judge(body, mine, stream.peer_certificate())
                check_role(session.peer.role, mine.identity.role, mine.gateless)
                if admit is not None:
                    admit(session)
            except Refused as refusal:
                said = Refusal(refusal.kind, refusal.code, refusal.reason, refusal.retry_after_s)
                stream.write(pack_plain(Verb.REFUSED, body=_encode(said)))
                await stream.drain()
                raise
            stream.write(pack_plain(Verb.WELCOME, body=mine.greeting()))
            return session
    except TimeoutError:
        raise DeadlineExceeded(f"{stream.peer} did not introduce itself in time") from None
    except ConnectionError as error:
        raise Disconnected(str(error)) from None


async def _greeting(stream: Stream, decoder: FrameDecoder) -> tuple[int, bytes]:
    while True:
        for flags, payload in decoder:
            if flags:
                raise Malformed("a greeting is not compressed")
            envelope = unpack(payload)
            return envelope.verb, envelope.body
        data = await stream.read(READ_BYTES)
        if not data:
            raise Disconnected(f"{stream.peer} closed the connection during the greeting")
        decoder.feed(data)


def _judge(body: bytes, mine: Introduction, certificate: bytes | None) -> Session:
    """The session with whoever wrote this greeting; raises Refused or Malformed."""
    proven = identity_of(certificate) if certificate is not None else None
    if proven is not None:
        check_same_cluster(proven.cluster_id, proven.environment_id, mine.identity)
    threshold: Threshold = decode_plain(Threshold, body)
    check_same_cluster(threshold.cluster_id, threshold.environment_id, mine.identity)
    if threshold.protocol[0] != mine.protocol[0]:
        raise Refused(
            "",
            f"protocol {_dotted(threshold.protocol)} cannot talk to {_dotted(mine.protocol)}: "
            "nodes of one cluster need the same major version",
            code=Reason.WRONG_PROTOCOL,
        )
    greeting: Greeting = decode_plain(Greeting, body)
    if greeting.role not in ROLES:
        raise Refused("", f"unknown role '{greeting.role}'", code=Reason.ROLE_NOT_ALLOWED)
    if proven is not None:
        _check_certificate(greeting, proven)
    return Session(
        peer=Identity(
            node_id=greeting.node_id,
            incarnation=greeting.incarnation,
            role=greeting.role,
            cluster_id=greeting.cluster_id,
            environment_id=greeting.environment_id,
            datacenter=greeting.datacenter,
            certified=proven is not None and bool(proven.node_id),
            groups=() if proven is None else proven.groups,
        ),
        protocol=min(greeting.protocol, mine.protocol),
        capabilities=_common(greeting.capabilities, mine.capabilities),
        node_version=greeting.node_version,
        serial=None if certificate is None else validity_of(certificate).serial,
    )


def _common(theirs: Iterable[str], ours: frozenset[str]) -> frozenset[str]:
    return ours.intersection(theirs)


def _check_certificate(greeting: Greeting, proven: CertificateIdentity) -> None:
    for what, said, shown in (
        ("role", greeting.role, proven.role),
        ("datacenter", greeting.datacenter, proven.datacenter),
        ("node", greeting.node_id, proven.node_id or greeting.node_id),
    ):
        if said != shown:
            raise Refused(
                "",
                f"the certificate is for {what} '{shown}', not '{said}'",
                code=Reason.WRONG_CERTIFICATE,
            )


def _dotted(protocol: tuple[int, int]) -> str:
    return f"{protocol[0]}.{protocol[1]}"
