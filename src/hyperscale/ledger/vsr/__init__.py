"""Viewstamped Replication: logs of operations, each kept by a group of replicas.

`states` has the theory and the table, `replica` decides for one group, `replica_set` for all groups
of a node, `groups` joins them to a disk and a network.
"""

from hyperscale.ledger.vsr.groups import Groups, Unknown
from hyperscale.ledger.vsr.messages import Entry
from hyperscale.ledger.vsr.replica import NotPrimary
from hyperscale.ledger.vsr.settings import VsrSettings

__all__ = ["Entry", "Groups", "NotPrimary", "Unknown", "VsrSettings"]
