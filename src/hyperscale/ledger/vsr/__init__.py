"""Viewstamped Replication: one log of operations, kept by a group of replicas.

`states` has the theory and the table, `replica` decides, `group` joins it to a disk and a network.
"""

from hyperscale.ledger.vsr.group import Group, Unknown
from hyperscale.ledger.vsr.messages import Entry
from hyperscale.ledger.vsr.replica import NotPrimary
from hyperscale.ledger.vsr.settings import VsrSettings

__all__ = ["Entry", "Group", "NotPrimary", "Unknown", "VsrSettings"]
