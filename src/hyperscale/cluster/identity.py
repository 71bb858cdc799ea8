"""Who a node is: a name that survives restarts and a number that grows with each life.

Addresses are advertised facts about a node, never its name: a process that comes back elsewhere
is the same node with a higher incarnation, and a stranger on an old address is not.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

NodeId = str

ROLES: Final = ("gate", "manager", "worker", "client", "probe")

# Bounds keep the largest identity well inside one datagram, and are checked while decoding.
NODE_ID_CHARS_MAX: Final = 64
HOST_CHARS_MAX: Final = 64
INCARNATION_MAX: Final = 2**62
# Numbers that only grow and are kept on disk (incarnations, terms, epochs of keys) grow by one, or
# by a block of 64 with each start. Whoever speaks of one this far beyond what is known lies: a
# number near the limit of decoding would be the last one that anybody could say.
JUMP_MAX: Final = 2**20

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NODE_ID_CHARS_MAX)]
Label = Annotated[str, msgspec.Meta(max_length=32)]
Incarnation = Annotated[int, msgspec.Meta(ge=0, le=INCARNATION_MAX)]
Endpoint = tuple[
    Annotated[str, msgspec.Meta(max_length=HOST_CHARS_MAX)],
    Annotated[int, msgspec.Meta(ge=0, le=65_535)],
]


class Node(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A node as it announces itself. `udp` and `tcp` are where others reach it."""

    node_id: Name
    incarnation: Incarnation
    role: Label
    datacenter: Label
    udp: Endpoint
    tcp: Endpoint
