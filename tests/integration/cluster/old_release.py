"""The `hyperscale` program as a release before this one would be: its nodes speak protocol 0.9."""

from __future__ import annotations

from dataclasses import replace

from hyperscale.cli import main
from hyperscale.cluster.membership import messages
from hyperscale.nodes.member import process
from hyperscale.nodes.member.node import Node
from hyperscale.wire.handshake import Introduction

PROTOCOL = (0, 9)


class OldNode(Node):
    def _introduction(self, incarnation: int) -> Introduction:
        return replace(super()._introduction(incarnation), protocol=PROTOCOL)


if __name__ == "__main__":
    messages.PROTOCOL_VERSION = PROTOCOL[0]  # type: ignore[misc]  # of datagrams
    process.Node = OldNode  # type: ignore[misc]
    main()
