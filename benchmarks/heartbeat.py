"""The largest heartbeat of a node and the fullest probe it travels in, in our bytes and in JSON.

A probe holds the sender, its coordinate, the heartbeat of its role, and gossip up to the size of a
sealed datagram. JSON carries the same facts under their names, with the standard library alone,
either from dicts to dicts, or from structs to structs whose lengths and ranges were checked, which
is what our decoder does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from hyperscale.cluster.coordinates import Coordinate
from hyperscale.cluster.identity import INCARNATION_MAX, Node
from hyperscale.cluster.membership.messages import (
    UPDATES_MAX,
    Alive,
    Ping,
    Sender,
    Suspect,
    Update,
    decode_datagram,
    header,
)

HEAD = header("bench")
encode = msgspec.msgpack.Encoder().encode


class ManagerHeartbeat(msgspec.Struct, array_like=True):
    """What a manager tells with each probe, the largest of all roles;
    membership carries it as opaque bytes."""

    node_id: str
    datacenter: str
    state: str
    is_leader: bool
    leader: str
    term: int
    version: int
    active_jobs: int
    active_workflows: int
    worker_count: int
    healthy_worker_count: int
    total_cores: int
    available_cores: int
    queue_depth: int
    cpu_percent: float
    memory_percent: float
    dispatches_per_s: float
    workflows_digest: int


read_state = msgspec.msgpack.Decoder(ManagerHeartbeat).decode
_STATE_FIELDS = [(field.name, field.type) for field in msgspec.structs.fields(ManagerHeartbeat)]


class Probe(msgspec.Struct):
    """A heartbeat with all that travels around it, as a node holds it."""

    sender: Sender
    state: ManagerHeartbeat
    sequence: int
    target: str
    updates: list[Update]


def largest(budget_bytes: int) -> Probe:
    state = ManagerHeartbeat(
        node_id="manager-eu-1-017",
        datacenter="eu-central-1",
        state="active",
        is_leader=False,
        leader="manager-eu-1-003",
        term=9_214,
        version=88_213,
        active_jobs=310,
        active_workflows=2_911,
        worker_count=1_000,
        healthy_worker_count=997,
        total_cores=65_536,
        available_cores=1_024,
        queue_depth=12,
        cpu_percent=71.25,
        memory_percent=43.5,
        dispatches_per_s=812.5,
        workflows_digest=0x1F3A_55C1_9D02,
    )
    place = Coordinate((0.0123, -0.0456, 0.0789, 0.0012), 0.0003, 0.17, 0.004, 8_192)
    sender = Sender(member("manager", 17), place, 88_213, encode(state))
    probe = Probe(sender, state, 4_000_000, "manager-eu-1-018", [])
    for number in range(UPDATES_MAX):
        probe.updates.append(gossip(number))
        if len(to_bytes(probe)) > budget_bytes:
            probe.updates.pop()
            break
    return probe


def member(role: str, number: int) -> Node:
    address = f"10.31.4.{number}"
    name = f"{role}-eu-1-{number:03}"
    return Node(name, number * 37, role, "eu-central-1", (address, 7_401), (address, 7_400))


def gossip(number: int) -> Update:
    if number % 3 == 0:
        return Suspect(f"worker-eu-1-{number:03}", number, ("manager-eu-1-017",))
    return Alive(member("worker", number))


def to_bytes(probe: Probe) -> bytes:
    return HEAD + encode(Ping(probe.sender, probe.sequence, probe.target, probe.updates))


def from_bytes(data: bytes) -> Probe:
    ping = decode_datagram(HEAD, data)
    assert isinstance(ping, Ping)
    state = read_state(ping.sender.heartbeat)
    return Probe(ping.sender, state, ping.sequence, ping.target, ping.updates)


def to_json(probe: Probe) -> str:
    return json.dumps(to_dict(probe))


def from_json(text: str) -> Probe:
    got = json.loads(text)
    state = got["state"]
    place = got["coordinate"]
    inner = ManagerHeartbeat(*(_checked(state[field], kind) for field, kind in _STATE_FIELDS))
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
    return Probe(sender, inner, _number(got["sequence"]), _name(got["target"]), updates)


def to_dict(probe: Probe) -> dict[str, Any]:
    state, place = probe.state, probe.sender.coordinate
    assert place is not None
    return {
        "node": _node_dict(probe.sender.node),
        "coordinate": {
            "position": place.position,
            "height": place.height,
            "error": place.error,
            "error_s": place.error_s,
            "samples": place.samples,
        },
        "heartbeat_version": probe.sender.heartbeat_version,
        "state": state_dict(state),
        "sequence": probe.sequence,
        "target": probe.target,
        "updates": [_update_dict(update) for update in probe.updates],
    }


def state_dict(state: ManagerHeartbeat) -> dict[str, Any]:
    return {field: getattr(state, field) for field, _ in _STATE_FIELDS}


def _checked(got: Any, kind: type) -> Any:
    if type(got) is not kind:
        raise ValueError(f"not a {kind.__name__}")
    return got


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
