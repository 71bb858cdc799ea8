"""`hyperscale worker` as a release before this one would be: it speaks protocol 0.9."""

from __future__ import annotations

from hyperscale.cli import main
from hyperscale.cluster.membership import messages
from hyperscale.nodes.worker import worker
from tests.integration.cluster.old_release import PROTOCOL, OldNode

if __name__ == "__main__":
    messages.PROTOCOL_VERSION = PROTOCOL[0]  # type: ignore[misc]  # of datagrams
    worker.Node = OldNode  # type: ignore[misc]
    main()
