"""The `hyperscale` program as a release before this one would be: its nodes speak protocol 0.9."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hyperscale.cli import main
from hyperscale.cluster.membership import messages
from hyperscale.nodes.member import node
from hyperscale.nodes.member.node_parts import introduction_of
from hyperscale.wire.handshake import Introduction

PROTOCOL = (0, 9)


def old_introduction_of(*given: Any) -> Introduction:
    return replace(introduction_of(*given), protocol=PROTOCOL)


if __name__ == "__main__":
    messages.PROTOCOL_VERSION = PROTOCOL[0]  # type: ignore[misc]  # of datagrams
    node.introduction_of = old_introduction_of
    main()
