"""Who a node is, and which role may call which."""

from __future__ import annotations

import re

import msgspec

from hyperscale.wire.errors import Reason, Refused

ROLES = ("client", "gate", "manager", "worker", "probe")
# Names stand in certificates, file names, datagrams and lists cut at commas.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
NAME_RULE = "letters, digits, '-', '_' and '.'"

# who may open a connection to whom. A bare member (probe) speaks to its like, and clients
# may look at it; it has no part in running tests.
MAY_CALL = frozenset(
    {
        ("client", "gate"),
        ("gate", "manager"),
        ("gate", "gate"),
        ("gate", "client"),
        ("manager", "worker"),
        ("manager", "manager"),
        ("manager", "gate"),
        ("manager", "client"),
        ("worker", "manager"),
        ("probe", "probe"),
        ("client", "probe"),
    }
)


def is_name(text: str) -> bool:
    """Of a node, a cluster, an environment or a datacenter."""
    return _NAME.fullmatch(text) is not None


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A node as it introduces itself; on TLS its certificate vouches for all but the
    incarnation."""

    node_id: str
    incarnation: int
    role: str
    cluster_id: str
    environment_id: str
    datacenter: str
    certified: bool = False  # of a peer: its certificate names this very node
    groups: tuple[str, ...] = ()  # of a peer: those that its certificate names


def check_role(caller: str, target: str, gateless: bool = False) -> None:
    """Raises Refused. A client reaches a manager only where there are no gates by configuration."""
    if (caller, target) in MAY_CALL:
        return
    if gateless and (caller, target) == ("client", "manager"):
        return
    raise Refused("", f"role '{caller}' cannot connect to '{target}'", code=Reason.ROLE_NOT_ALLOWED)


def check_same_cluster(cluster_id: str, environment_id: str, expected: Identity) -> None:
    """Raises Refused, naming both sides and nothing else (A-54)."""
    if cluster_id != expected.cluster_id:
        raise Refused(
            "",
            f"this is cluster '{expected.cluster_id}', not '{cluster_id}'",
            code=Reason.WRONG_CLUSTER,
        )
    if environment_id != expected.environment_id:
        raise Refused(
            "",
            f"this is environment '{expected.environment_id}', not '{environment_id}'",
            code=Reason.WRONG_ENVIRONMENT,
        )
