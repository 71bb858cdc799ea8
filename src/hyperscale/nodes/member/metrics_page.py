"""What a node and its role say of themselves over HTTP: metrics, health, and pages for debugging.

A role adds its own before the node starts. Whoever runs the machine may read everything; on an
address that others can reach there are metrics and health only, which name nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hyperscale.nodes.member import report
from hyperscale.nodes.member.debug import debug_pages
from hyperscale.nodes.member.metrics import Metric
from hyperscale.runtime.host import Address, Host, is_loopback
from hyperscale.runtime.page_server import Health, PageServer

if TYPE_CHECKING:
    from hyperscale.nodes.member.node import Node

LIVE = "/health/live"
READY = "/health/ready"
STARTUP = "/health/startup"


def _no_metrics() -> Iterable[Metric]:
    return ()


def _ready() -> Health:
    return Health(ok=True)


@dataclass(slots=True)
class NodePages:
    metrics: Callable[[], Iterable[Metric]] = _no_metrics
    ready: Callable[[], Health] = _ready
    """Whether it can do its work now. Being idle is no reason why not."""
    pages: Mapping[str, Callable[[], object]] = field(default_factory=dict)

    def server(self, node: Node, host: Host, address: Address) -> PageServer:
        from hyperscale.nodes.member.metrics_text import render

        pages = {**debug_pages(node, host), **self.pages} if is_loopback(address.host) else {}
        checks = {
            LIVE: lambda: _alive(node),
            READY: lambda: _remarked(node, self.ready()),
            STARTUP: lambda: _begun(node),
        }
        return PageServer(
            host, lambda: render((*report.metrics(node), *self.metrics())), pages, checks
        )


def _remarked(node: Node, health: Health) -> Health:
    remark = node.certificates.remark if node.started else ""
    return Health(health.ok, "; ".join(filter(None, (health.reason, remark))))


def _begun(node: Node) -> Health:
    """Read, listening, and looking for its cluster. Until then nobody should judge it otherwise."""
    return Health(ok=node.started, reason="" if node.started else "it is starting")


def _alive(node: Node) -> Health:
    """It answers, so it lives, unless it is about to end."""
    if node.over.is_set():
        return Health(ok=False, reason=str(node.failure or "it is ending"))
    return Health(ok=True)
