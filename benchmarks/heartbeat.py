"""The largest heartbeat a node sends, in our bytes and in JSON, with the same work done.

Ours is a probe of membership: sender, coordinate, the role's heartbeat, and gossip up to the size
of a sealed datagram. The JSON contender carries the same facts under their names, with the
standard library alone. Both go from structs to bytes and back to structs whose lengths and ranges
were checked: a decoder that believes strangers is no contender. `bare` stops at text and dicts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from hyperscale.cluster.coordinates import Coordinate
from hyperscale.cluster.identity import INCARNATION_MAX, Node
from hyperscale.cluster.membership.messages import (
    HEADER_BYTES,
    UPDATES_MAX,
    Alive,
    Ping,
    Sender,
    Suspect,
    Update,
    decode_datagram,
    decode_update,
    encode_update,
    header,
)

HEAD = header("bench")
encode = msgspec.msgpack.Encoder().encode


class ManagerHeartbeat(msgspec.Struct, array_like=True):
    """What a manager tells with each probe; membership carries it as opaque bytes."""

    term: int
    leader: str
    cores_total: int
    cores_free: int
    jobs: int
    workers: int
    dispatches_per_s: float


_read_state = msgspec.msgpack.Decoder(ManagerHeartbeat).decode


class Heartbeat(msgspec.Struct):
    """All of it as a node holds it."""

    sender: Sender
    state: ManagerHeartbeat
    sequence: int
    target: str
    updates: list[Update]


def largest(budget_bytes: int) -> Heartbeat:
    state = ManagerHeartbeat(9_214, "manager-eu-1-003", 65_536, 1_024, 310, 1_000, 812.5)
    place = Coordinate((0.0123, -0.0456, 0.0789, 0.0012), 0.0003, 0.17, 0.004, 8_192)
    sender = Sender(member("manager", 17), place, 88_213, encode(state))
    heartbeat = Heartbeat(sender, state, 4_000_000, "manager-eu-1-018", [])
    for number in range(UPDATES_MAX):
        heartbeat.updates.append(gossip(number))
        if len(to_bytes(heartbeat)) > budget_bytes:
            heartbeat.updates.pop()
            break
    return heartbeat


def member(role: str, number: int) -> Node:
    address = f"10.31.4.{number}"
    name = f"{role}-eu-1-{number:03}"
    return Node(name, number * 37, role, "eu-central-1", (address, 7_401), (address, 7_400))


def gossip(number: int) -> Update:
    if number % 3 == 0:
        return Suspect(f"worker-eu-1-{number:03}", number, ("manager-eu-1-017",))
    return Alive(member("worker", number))


def to_bytes(heartbeat: Heartbeat) -> bytes:
    sender = msgspec.structs.replace(heartbeat.sender, heartbeat=encode(heartbeat.state))
    updates = [encode_update(update) for update in heartbeat.updates]
    data = HEAD + encode(Ping(sender, heartbeat.sequence, heartbeat.target, updates))
    assert len(data) > HEADER_BYTES
    return data


def from_bytes(data: bytes) -> Heartbeat:
    ping = decode_datagram(HEAD, data)
    assert isinstance(ping, Ping)
    updates = [decode_update(update) for update in ping.updates]
    state = _read_state(ping.sender.heartbeat)
    return Heartbeat(ping.sender, state, ping.sequence, ping.target, updates)


def to_json(heartbeat: Heartbeat) -> str:
    return json.dumps(to_dict(heartbeat))


def from_json(text: str) -> Heartbeat:
    got = json.loads(text)
    state = got["state"]
    place = got["coordinate"]
    inner = ManagerHeartbeat(
        _number(state["term"]),
        _name(state["leader"]),
        _number(state["cores_total"]),
        _number(state["cores_free"]),
        _number(state["jobs"]),
        _number(state["workers"]),
        _real(state["dispatches_per_s"]),
    )
    coordinate = Coordinate(
        tuple(_real(part) for part in place["position"]),
        _real(place["height"]),
        _real(place["error"]),
        _real(place["error_s"]),
        _number(place["samples"]),
    )
    version = _number(got["heartbeat_version"])
    sender = Sender(_node(got["node"]), coordinate, version, encode(inner))
    updates = [_update(update) for update in got["updates"]]
    return Heartbeat(sender, inner, _number(got["sequence"]), _name(got["target"]), updates)


def to_dict(heartbeat: Heartbeat) -> dict[str, Any]:
    state, place = heartbeat.state, heartbeat.sender.coordinate
    assert place is not None
    return {
        "node": _node_dict(heartbeat.sender.node),
        "coordinate": {
            "position": place.position,
            "height": place.height,
            "error": place.error,
            "error_s": place.error_s,
            "samples": place.samples,
        },
        "heartbeat_version": heartbeat.sender.heartbeat_version,
        "state": {
            "term": state.term,
            "leader": state.leader,
            "cores_total": state.cores_total,
            "cores_free": state.cores_free,
            "jobs": state.jobs,
            "workers": state.workers,
            "dispatches_per_s": state.dispatches_per_s,
        },
        "sequence": heartbeat.sequence,
        "target": heartbeat.target,
        "updates": [_update_dict(update) for update in heartbeat.updates],
    }


def _update_dict(update: Update) -> dict[str, Any]:
    if isinstance(update, Alive):
        return {"kind": "alive", "node": _node_dict(update.node)}
    assert isinstance(update, Suspect)
    return {
        "kind": "suspect",
        "node_id": update.node_id,
        "incarnation": update.incarnation,
        "accusers": update.accusers,
    }


def _node_dict(node: Node) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "incarnation": node.incarnation,
        "role": node.role,
        "datacenter": node.datacenter,
        "udp": node.udp,
        "tcp": node.tcp,
    }


def _update(got: dict[str, Any]) -> Update:
    if got["kind"] == "alive":
        return Alive(_node(got["node"]))
    accusers = tuple(_name(accuser) for accuser in got["accusers"])
    return Suspect(_name(got["node_id"]), _number(got["incarnation"]), accusers)


def _node(got: dict[str, Any]) -> Node:
    return Node(
        _name(got["node_id"]),
        _number(got["incarnation"]),
        _name(got["role"]),
        _name(got["datacenter"]),
        _endpoint(got["udp"]),
        _endpoint(got["tcp"]),
    )


def _endpoint(got: Sequence[Any]) -> tuple[str, int]:
    host, port = got
    return _name(host), _number(port)


def _name(got: Any) -> str:
    if type(got) is not str or not 1 <= len(got) <= 64:
        raise ValueError("not a name")
    return got


def _number(got: Any) -> int:
    if type(got) is not int or not 0 <= got <= INCARNATION_MAX:
        raise ValueError("not a number")
    return got


def _real(got: Any) -> float:
    if type(got) is not float:
        raise ValueError("not a real number")
    return got
