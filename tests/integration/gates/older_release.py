"""The `hyperscale` program as a release before gates probed datacenters: same protocol, fewer
messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hyperscale.cli import main
from hyperscale.nodes.manager import manager
from hyperscale.nodes.member import node
from hyperscale.nodes.member.node_parts import introduction_of
from hyperscale.nodes.protocol.datacenters import ProbeDatacenter
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.messages import Registry

VERSION = "0.0.9"


def older_introduction_of(*given: Any) -> Introduction:
    return replace(introduction_of(*given), node_version=VERSION)


class OlderNode(node.Node):
    def answer(self, handlers: Any) -> None:
        super().answer({kind: one for kind, one in handlers.items() if kind != ProbeDatacenter})


if __name__ == "__main__":
    node.introduction_of = older_introduction_of
    manager.DATACENTERS = Registry()
    manager.Node = OlderNode
    main()
