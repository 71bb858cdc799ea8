"""Work that a node must not go on without: when it dies of an error, the node ends.

A node that lost one of its loops would go on answering, and others would count on it. One that
ends is replaced, and started again by whoever looks after it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from hyperscale.nodes.member.node import Node
from hyperscale.runtime.host import Host, Task


def spawn_vital(host: Host, node: Node, name: str, work: Coroutine[Any, Any, None]) -> Task:
    async def live_or_end() -> None:
        try:
            await work
        except Exception as error:
            node.failure = node.failure or error
            node.over.set()
            raise  # so that it is reported, as every task that dies

    return host.tasks.spawn(name, live_or_end())
