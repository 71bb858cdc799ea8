"""What authors' code may see of a worker's environment."""

from __future__ import annotations

from hyperscale.nodes.worker.confidential import without_ours


def test_what_concerns_the_cluster_stays_with_the_worker() -> None:
    ours = {
        "HYPERSCALE_NODE_SECRET_FILE": "/etc/hyperscale/secret",
        "HYPERSCALE_NODE_CERTS": "/etc/hyperscale/certs",
        "HYPERSCALE_SCHEDULER_TOKEN": "t",
        "HYPERSCALE_CLUSTER_CERTS": "certs",
        "CREDENTIALS_DIRECTORY": "/run/credentials/hyperscale-worker.service",
    }
    theirs = {"PATH": "/bin", "TARGET": "http://x", "MY_HYPERSCALE_THING": "1", "LANG": "C"}

    assert without_ours(ours | theirs) == theirs
