"""The managers of a cluster as one thing to talk to.

Any manager can be asked. The one that answered last is asked first; when it is gone the next one
is, round and round with pauses that grow, until the time for it is over. Until the first of them is
connected that time is short, and each has a share of it. Whoever answers is asked for the others,
so that naming one manager is enough to survive its death. What a misconfigured client gets to hear
does not change with time: it is said at once.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import math
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from hyperscale._version import __version__
from hyperscale.cluster.discovery.settings import parse_address
from hyperscale.cluster.overload.backoff import Backoff
from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.nodes.client.errors import NoManagersAvailable, UnknownJob
from hyperscale.nodes.client.waiting import Say, Waiting, waiting
from hyperscale.nodes.member.queries import QUERIES, AskMembers, Members
from hyperscale.nodes.protocol.datacenters import DATACENTERS
from hyperscale.nodes.protocol.jobs import JOBS, SUBMISSION_BYTES_MAX, UNKNOWN_JOB, SubmitJob
from hyperscale.runtime.host import Address, Host
from hyperscale.wire.certificates import Credentials
from hyperscale.wire.endpoint import Endpoint, Limits, Plaintext
from hyperscale.wire.errors import (
    DeadlineExceeded,
    Disconnected,
    Reason,
    Refused,
    RemoteFailed,
    WireError,
)
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.updates import Updates

T = TypeVar("T")

# Nobody was ever connected: a wrong address should not cost more than a moment.
FIRST_CONTACT_S = 5.0
# But each manager has this much of it: three round trips over TLS, of half a second each.
SHARE_S = 1.5
# We were connected: an election takes 3 to 9 s, a restart of all managers from disk somewhat more.
PATIENCE_S = 60.0
# One manager's share of that: above the quorum timeout (5 s), so that its own answer arrives.
ATTEMPT_S = 8.0
# And what a large submission adds to both: as a bad line carries it.
SLOWEST_BYTES_PER_S = 100_000
# So the largest submission is repeated for this long at most.
REPEATED_S = math.ceil(PATIENCE_S + SUBMISSION_BYTES_MAX / SLOWEST_BYTES_PER_S)
BACKOFF = Backoff(base_delay_s=0.2, delay_max_s=2.0)
MANAGERS_MAX = 32
# A manager that does not even answer pings is given up well before the managers themselves do.
LIMITS = Limits(connect_timeout_s=3.0, keepalive_s=3.0, keepalive_timeout_s=3.0)

REGISTRY = Registry()
REGISTRY.include(JOBS)
REGISTRY.include(QUERIES)
REGISTRY.include(DATACENTERS)

_LOST = (Disconnected, DeadlineExceeded, RemoteFailed)


def endpoint_of(
    host: Host,
    identity: Identity,
    credentials: Credentials | None = None,
    plaintext: Plaintext = "loopback",
) -> Endpoint:
    return Endpoint(
        host,
        Introduction(identity, node_version=__version__),
        REGISTRY,
        credentials=credentials,
        plaintext=plaintext,
        limits=LIMITS,
    )


class Managers:
    def __init__(
        self,
        endpoint: Endpoint,
        addresses: Sequence[Address],
        *,
        secured: bool = False,
        patience_s: float | None = None,
        of_datacenter: str | None = None,
    ) -> None:
        """`secured`: over TLS, so that a certificate may be what is wrong. `patience_s`: for how
        long they are asked again and again when nobody answers, from the first time on; without
        it, a client is less patient until it has met one of them. `of_datacenter`: only managers
        of this one are spoken to; without it, managers or gates of any."""
        if not addresses:
            raise ValueError("a client needs the address of a manager")
        self._endpoint = endpoint
        self._secured = secured
        self._patience_s = patience_s
        self._of_datacenter = of_datacenter
        self._host = endpoint.host
        self._peers = [self._peer(address) for address in dict.fromkeys(addresses)]
        self.on_outcome: Callable[[Address, bool], None] | None = None
        """Told of every manager that was asked whether it answered, be it with a refusal."""
        self.on_waiting: Say | None = None
        """Told what a question waits for, when it has to."""
        self._met = patience_s is not None
        self._asked: set[Address] = set()

    @property
    def patience_s(self) -> float:
        return PATIENCE_S if self._patience_s is None else self._patience_s

    @property
    def addresses(self) -> list[Address]:
        """The one that is asked first comes first."""
        return [peer.address for peer in self._peers]

    @property
    def datacenter(self) -> str | None:
        """Of the managers; None before the first connection."""
        known = [peer.identity for peer in self._peers if peer.identity is not None]
        return known[0].datacenter if known else None

    def close(self) -> None:
        for peer in self._peers:
            peer.close()

    async def ask(self, message: object, expect: type[T], within_s: float | None = None) -> T:
        """The answer of any manager. Raises HyperscaleError. The message may be delivered more
        than once: every question of a client is one that may be repeated."""

        async def attempt(peer: Peer, seconds: float) -> T:
            return await peer.request(message, expect, seconds)

        # Only submissions are large.
        size = len(message.body) if isinstance(message, SubmitJob) else 0
        return await self._until_answered(attempt, within_s, size / SLOWEST_BYTES_PER_S)

    async def subscribe(self, message: object, expect: type[T]) -> Updates[T]:
        """A stream of updates from any manager that can be connected."""

        async def attempt(peer: Peer, seconds: float) -> Updates[T]:
            return await peer.subscribe(message, expect)

        return await self._until_answered(attempt)

    async def connect(self) -> None:
        async def attempt(peer: Peer, seconds: float) -> None:
            await peer.connection()

        await self._until_answered(attempt)

    def next(self) -> None:
        """Ask somebody else first from now on."""
        self._peers.append(self._peers.pop(0))

    async def _until_answered(
        self,
        attempt: Callable[[Peer, float], Awaitable[T]],
        within_s: float | None = None,
        sending_s: float = 0.0,
    ) -> T:
        with waiting(self.on_waiting) as word:
            return await self._ask_around(attempt, within_s, sending_s, word)

    async def _ask_around(
        self,
        attempt: Callable[[Peer, float], Awaitable[T]],
        within_s: float | None,
        sending_s: float,
        word: Waiting | None,
    ) -> T:
        clock = self._host.clock
        patience_s = self.patience_s + sending_s if within_s is None else within_s
        is_first = not self._met and within_s is None
        first_s = max(FIRST_CONTACT_S, SHARE_S * len(self._peers))
        deadline = clock.now() + (first_s if is_first else patience_s)
        asked, rounds = False, 0
        while True:
            failures: dict[Address, WireError] = {}
            wait_s = 0.0
            peers = list(self._peers)
            for tried, known in enumerate(peers):
                left_s = deadline - clock.now()
                if left_s <= 0:
                    break
                if word is not None:
                    word.asks(str(known.address))
                try:
                    with self._line(known, sending_s) as peer:
                        await _reach(peer, left_s / (len(peers) - tried))
                        if is_first and not asked:
                            deadline = clock.now() + patience_s
                        self._met = asked = True
                        left_s = max(deadline - clock.now(), 0.001)
                        answer = await attempt(peer, min(ATTEMPT_S + sending_s, left_s))
                except Refused as refusal:
                    self._note(known, answered=True)
                    if refusal.retry_after_s is None:
                        raise refused(known.address, refusal) from refusal
                    wait_s = max(wait_s, refusal.retry_after_s)
                    failures[known.address] = refusal
                except _LOST as error:
                    self._note(known, answered=False)
                    failures[known.address] = error
                else:
                    self._note(known, answered=True)
                    self._found(known)
                    return answer
            _complain_of_certificates(failures)
            if word is not None and failures:
                word.because(_what_is_missing(failures))
            wait_s = max(wait_s, BACKOFF.delay_s(rounds, self._host.random))
            if clock.now() + wait_s >= deadline:
                raise _unreachable(failures, self.addresses, self._secured, asked)
            await clock.sleep(wait_s)
            rounds += 1

    @contextmanager
    def _line(self, peer: Peer, sending_s: float) -> Iterator[Peer]:
        """What takes long to send has a connection of its own, for pings wait behind it. A new one
        also shows who hangs before everything is sent to them."""
        limits = self._endpoint.limits
        if sending_s < limits.keepalive_timeout_s / 2:
            yield peer
            return
        endpoint = copy.copy(self._endpoint)
        endpoint.limits = dataclasses.replace(
            limits, keepalive_timeout_s=limits.keepalive_timeout_s + sending_s
        )
        own = self._peer(peer.address, endpoint)
        try:
            yield own
        finally:
            own.close()

    def _note(self, peer: Peer, *, answered: bool) -> None:
        if self.on_outcome is not None:
            self.on_outcome(peer.address, answered)

    def _found(self, peer: Peer) -> None:
        self._met = True
        if self._peers[0] is not peer:
            self._peers.remove(peer)
            self._peers.insert(0, peer)
        if peer.address not in self._asked:
            self._asked.add(peer.address)
            self._host.tasks.spawn("learn of managers", self._learn(peer))

    async def _learn(self, peer: Peer) -> None:
        """Ask for the other managers; without an answer the known ones are used."""
        with suppress(WireError):
            answer = await peer.request(AskMembers(), Members, ATTEMPT_S)
            role = "manager" if peer.identity is None else peer.identity.role
            managers = [row for row in answer.rows if row.role == role]
            self.learn([row.address for row in managers if row.state == "alive"])

    def learn(self, texts: Sequence[str]) -> None:
        known = {peer.address for peer in self._peers}
        for text in texts:
            with suppress(ValueError):
                address = Address(*parse_address(text))
                if address not in known and len(self._peers) < MANAGERS_MAX:
                    known.add(address)
                    self._peers.append(self._peer(address))

    def _peer(self, address: Address, endpoint: Endpoint | None = None) -> Peer:
        role = None if self._of_datacenter is None else "manager"
        return Peer(
            endpoint or self._endpoint,
            address,
            expect_role=role,
            expect_datacenter=self._of_datacenter,
        )


async def _reach(peer: Peer, seconds: float) -> None:
    try:
        async with asyncio.timeout(min(ATTEMPT_S, seconds)):
            await peer.connection()
    except TimeoutError:
        raise DeadlineExceeded(f"{peer.address} could not be connected in time") from None


# -- errors as a person reads them ---------------------------------------------------------------

_MISTAKES = {
    Reason.WRONG_CLUSTER: "--cluster-id, or the certificate, must be of the cluster you mean",
    Reason.WRONG_ENVIRONMENT: "--environment, or the certificate, must be of the one you mean",
    Reason.WRONG_PROTOCOL: "install the version of hyperscale that the cluster runs",
    Reason.OLD_VERSION: "install the version of hyperscale that the cluster runs",
    Reason.UNKNOWN_KIND: "the cluster runs another version of hyperscale: install the same one",
    Reason.NOT_ANSWERED: "is this the address of a manager? hyperscale members HOST:PORT tells",
    Reason.WRONG_CERTIFICATE: "--certs and --name choose the certificate that is shown",
    Reason.ROLE_NOT_ALLOWED: "name the address of a manager, or of a gate where there are gates",
    Reason.TOO_LARGE: "leave large files out of the test's directory",
}


def refused(address: Address, refusal: Refused) -> HyperscaleError:
    """A no that time does not change."""
    if refusal.code == UNKNOWN_JOB:
        return UnknownJob(
            refusal.reason, "hyperscale jobs lists those there are; ended ones are forgotten"
        )
    for reason, hint in _MISTAKES.items():
        if refusal.code == reason:
            return RunFailed(f"{address} refuses: {refusal.reason}", hint)
    return RunFailed(f"{address} refuses: {refusal.reason}")


def _complain_of_certificates(failures: dict[Address, WireError]) -> None:
    """When TLS itself is what fails everywhere, waiting does not help."""
    causes = {address: _tls_error(error) for address, error in failures.items()}
    if not causes or not all(causes.values()):
        return
    address, cause = next(iter(causes.items()))
    what = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or str(cause)
    what = str(what).replace("_", " ").lower()
    raise RunFailed(
        f"{address} and this client do not accept each other's certificates: {what}",
        "--certs must hold a client certificate of the cluster's own authority, and the manager's "
        "certificate must name the address it is called by (hyperscale certs --host)",
    ) from cause


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def _what_is_missing(failures: dict[Address, WireError]) -> str:
    """While it is still waited for. A manager that speaks knows more than one that is silent."""
    for error in failures.values():
        if isinstance(error, Refused):
            return error.reason
    address, error = next(iter(failures.items()))
    others = f", nor do {len(failures) - 1} others" if len(failures) > 1 else ""
    return f"{address} does not answer{others}: {error}"


def _unreachable(
    failures: dict[Address, WireError],
    addresses: Sequence[Address],
    secured: bool,
    asked: bool,
) -> NoManagersAvailable:
    """`asked`: one was connected, and may have heard the question."""
    refusals = [error for error in failures.values() if isinstance(error, Refused)]
    shown = ", ".join(map(str, addresses[:5]))
    why = next((str(error) for error in failures.values()), "no answer in time")
    if refusals or asked:
        return NoManagersAvailable(
            f"the cluster cannot answer now: {refusals[0].reason}"
            if refusals
            else f"no manager answers at {shown}: {why}",
            "a cluster without a majority of its managers decides nothing; hyperscale members "
            "HOST:PORT shows who is there",
            maybe_done=asked,
            busy=bool(refusals),
        )
    return NoManagersAvailable(
        f"no manager can be reached at {shown}: {why}",
        "is the cluster running there, and is the certificate in --certs of its authority?"
        if secured
        else "is the cluster running there, and without TLS? --certs DIR speaks TLS; "
        "hyperscale dev starts a cluster to practise",
    )
