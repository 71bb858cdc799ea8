"""What a node tells about itself: its members, its state, its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hyperscale import __version__
from hyperscale.cluster.membership import Member
from hyperscale.cluster.overload import Priority
from hyperscale.nodes.member.metrics import Metric, labelled, single
from hyperscale.nodes.member.queries import MemberRow, Members, Status
from hyperscale.runtime.host import Address, Host

if TYPE_CHECKING:
    from hyperscale.nodes.member.node import Node

VERSION = __version__
_GAUGES = {
    "peers_unconfirmed", "peers_alive", "peers_suspect", "peers_dead", "peers_left",
    "health_score", "queued_news", "incarnation",
}  # fmt: skip


def members(node: Node) -> Members:
    election = node.election
    rows = [_own_row(node), *(_row(node, member) for member in node.membership.core.members())]
    leader, term = _leadership(node)
    return Members(
        node_id=node.settings.id,
        cluster=node.settings.cluster,
        env=node.settings.env,
        rows=sorted(rows, key=lambda row: row.node_id),
        voters=[] if election is None else sorted(node.settings.voters),
        leader=leader,
        term=term,
        difference=node.difference,
    )


def _leadership(node: Node) -> tuple[str | None, int]:
    """Our own word as a voter; otherwise that of the member with the highest term."""
    if node.election is not None:
        return node.election.leader, node.election.term
    told = [vitals for vitals in node.vitals.values() if vitals.term]
    if not told:
        return None, 0
    newest = max(told, key=lambda vitals: (vitals.term, vitals.leader is not None))
    return newest.leader, newest.term


def _own_row(node: Node) -> MemberRow:
    core = node.membership.core
    return MemberRow(
        node_id=core.me.node_id,
        role=core.me.role,
        datacenter=core.me.datacenter,
        state="alive",
        confirmed=True,
        incarnation=core.me.incarnation,
        address=str(Address(*core.me.tcp)),
        since_s=node.uptime_s,
        syncing=node.syncing(),
        health_score=core.health_score,
        coordinate_error=core.coordinate.error,
    )


def _row(node: Node, member: Member) -> MemberRow:
    core = node.membership.core
    vitals = node.vitals.get(member.node_id) if member.live else None
    return MemberRow(
        node_id=member.node_id,
        role=member.node.role,
        datacenter=member.node.datacenter,
        state=member.state.name.lower(),
        confirmed=member.confirmed,
        incarnation=member.incarnation,
        address=str(Address(*member.node.tcp)),
        since_s=max(0.0, node.now() - member.changed_at),
        syncing=vitals is not None and vitals.syncing,
        health_score=None if vitals is None else vitals.health_score,
        rtt_s=core.rtt_estimate_s(member.node_id) if member.live else None,
        rtt_measured_s=member.rtt_s,
        coordinate_error=None if member.coordinate is None else member.coordinate.error,
    )


def status(node: Node, host: Host) -> Status:
    election, bootstrap = node.election, node.bootstrap
    return Status(
        node_id=node.settings.id,
        incarnation=node.membership.me.incarnation,
        version=VERSION,
        uptime_s=node.uptime_s,
        load=node.admission.load.name.lower(),
        discovery="" if bootstrap is None else bootstrap.state.value,
        election="" if election is None else election.state.value,
        tasks=host.tasks.names(),
        counts=node.membership.metrics() | {name: float(n) for name, n in node.counts.items()},
    )


def metrics(node: Node) -> Iterator[Metric]:
    known = node.membership.metrics()
    states = {
        name.removeprefix("peers_"): number
        for name, number in known.items()
        if name.startswith("peers_")
    }
    yield labelled("members", "gauge", "Other members by state.", "state", states)
    for name in ("health_score", "queued_news", "incarnation"):
        yield single(name, "gauge", _HELP[name], known[name])
    events = {name: number for name, number in known.items() if name not in _GAUGES}
    yield labelled(
        "membership_events_total", "counter", "What happened in membership.", "event", events
    )
    yield single(
        "coordinate_error",
        "gauge",
        "Relative error of our network coordinate.",
        node.membership.core.coordinate.error,
    )
    core = node.membership.core
    measured = {"taken": float(core.coordinate_updates), "refused": float(core.coordinate_refused)}
    yield labelled(
        "coordinate_updates_total",
        "counter",
        "Round trips from which our coordinate learnt, or did not.",
        "fate",
        measured,
    )
    yield single(
        "membership_news_dropped_total",
        "counter",
        "Updates about members that found no room and were told to nobody else.",
        core.news_dropped,
    )
    yield from _overload(node)
    yield from _wire(node)
    if node.bootstrap is not None:
        counts = {name: float(n) for name, n in node.bootstrap.metrics().items()}
        yield labelled("discovery_events_total", "counter", "Looking for peers.", "event", counts)
    if node.election is not None:
        voting = node.voting
        assert voting is not None
        differing = float(len(voting.electorate.known.differing))
        yield single(
            "election_voters_differing", "gauge", "Voters with another list than ours.", differing
        )
        text = "1 while enough voters are alive to elect a leader."
        yield single("election_quorum_alive", "gauge", text, float(bool(voting.quorum)))
        text = "Times that enough voters were alive, or not any more."
        yield single("election_quorum_changes_total", "counter", text, voting.quorum_changes)
        leads = float(node.election.may_lead())
        yield single("election_term", "gauge", "Term this voter knows.", node.election.term)
        yield single("election_leading", "gauge", "1 while this node holds the lease.", leads)
    yield single("uptime_seconds", "gauge", "Since this node started.", node.uptime_s)


_HELP = {
    "health_score": "How little this node trusts its own judgement: 0 well, 8 worst.",
    "queued_news": "Updates about members that still travel.",
    "incarnation": "Of this node; grows with every start and refutation.",
}


def _overload(node: Node) -> Iterator[Metric]:
    counts = node.admission.slots.counts()
    for name, kind, text in (
        ("in_flight", "gauge", "Messages being worked on."),
        ("acquired", "counter", "Messages taken on."),
        ("shed", "counter", "Messages refused for load or want of a slot."),
    ):
        values = {p.name.lower(): float(getattr(counts[p], name)) for p in Priority}
        if kind == "gauge":
            yield labelled(f"admission_{name}", "gauge", text, "priority", values)
        else:
            yield labelled(f"admission_{name}_total", "counter", text, "priority", values)
    yield single(
        "load", "gauge", "0 healthy, 1 busy, 2 stressed, 3 overloaded.", node.admission.load
    )
    limiter = node.admission.limiter
    if limiter is not None:
        refused = {cause.value: float(n) for cause, n in limiter.refused.items()}
        yield labelled(
            "rate_limited_total", "counter", "Messages refused by rate limits.", "cause", refused
        )


def _wire(node: Node) -> Iterator[Metric]:
    if node.certificates.validity is not None:
        yield single(
            "certificate_expires_timestamp_seconds",
            "gauge",
            "When our certificate ends, in Unix time.",
            node.certificates.validity.ends_at,
        )
    refused = float(node.certificates.refused)
    yield single("certificates_refused", "gauge", "Entries of the list of refused ones.", refused)
    yield single(
        "connections", "gauge", "Accepted and greeted.", float(len(node.server.connections))
    )
    for name, text, counts in (
        ("connections_turned_away_total", "Callers refused.", node.server.turned_away),
        ("datagrams_dropped_total", "Datagrams nobody looked at.", node.datagrams_dropped),
        ("exchanges_refused_total", "Full-state exchanges refused.", node.exchanges_refused),
    ):
        values = {str(reason): float(n) for reason, n in counts.items()}
        yield labelled(name, "counter", text, "reason", values)
