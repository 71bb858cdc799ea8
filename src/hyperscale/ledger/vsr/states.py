"""Everything that decides what a group has committed: the statuses of a replica and their moves.

# Theory of operation

A *group* of replicas keeps one *log* of operations. In each *view* one of them is the *primary*:
the one whose turn it is, `members[view % n]`. It gives every operation the next *op number* and
sends it to the others, the *backups*. A replica writes to disk before it answers. An operation is
*committed* when a quorum (more than half, the primary included) has it on disk.

*View change.* A backup that has not heard from its primary for a lease says that it would move to
the next view (`StartViewChange`). When a quorum would, each promises: from then on it accepts
nothing of the view before. It sends its log to the new primary (`DoViewChange`), which waits for a
quorum of logs and takes the one that was last in the highest view, and of those the longest. A
committed operation is on a quorum, so one of these logs has it; and the log of the higher view has
it because its primary had chosen in the same way. The new primary sends the log to all
(`StartView`). To ask before promising keeps a replica that hears nobody from running ahead of the
others. One that did promise while the others stayed cannot come back, so a primary that hears of it
hands over.

*State transfer.* A replica that hears of a view in which it has no log asks for the log
(`GetState`). It keeps its own until the other one is there and replaces it in one write. To cut the
own log first, as the paper has it, can lose what was committed: the cut replica may take part in
the next view change as the only one that had the operation.

*Recovery.* A replica whose disk was lost has forgotten what it promised. It takes part in nothing
until a quorum of others, the primary of the newest view among them, has told it (`Recovery`).
The others count only if they are in the normal case, so a view change that it may have promised is
over.

*Lease.* Heartbeats are between nodes, for all groups that both are in (`contact`). A backup whose
node answers one that covers its group joins no view change for `lease_s`. The primary counts from
the moment it sent the heartbeat, takes off a bound for drifting clocks, and answers reads from its
own log only while a quorum's promises hold. A view change needs a quorum too, so one of its
members was bound by the lease until it was over. Promises are not on disk: who starts joins no
view change for a lease. A primary that resigns frees the others at once.

*Reconfiguration.* The group changes by an operation that is the last of its *epoch*. A replica that
commits it is in the next epoch, in view 0. New replicas get the log from those that have it, and
take part when they have all of it: so every log of an epoch holds all of the epochs before.
Replaced ones keep the log until a quorum of the new group has it. `(epoch, view)` is the token
under which a primary acts, compared in this order.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from hyperscale.cluster.invariants import InvariantBroken


class Status(Enum):
    NORMAL = "normal"
    VIEW_CHANGE = "view change"
    RECOVERING = "recovering"  # its disk was lost
    TRANSITIONING = "transitioning"  # new in the group, without the log
    RETIRED = "retired"  # no longer in the group


MOVES: Final[dict[Status, frozenset[Status]]] = {
    Status.NORMAL: frozenset({Status.NORMAL, Status.VIEW_CHANGE, Status.RETIRED}),
    Status.VIEW_CHANGE: frozenset({Status.VIEW_CHANGE, Status.NORMAL, Status.RETIRED}),
    Status.RECOVERING: frozenset({Status.NORMAL, Status.RETIRED}),
    Status.TRANSITIONING: frozenset({Status.NORMAL, Status.RETIRED}),
    # It may be taken into the group again later.
    Status.RETIRED: frozenset({Status.RETIRED, Status.TRANSITIONING, Status.NORMAL}),
}


def move(before: Status, after: Status) -> Status:
    if after not in MOVES[before]:
        raise InvariantBroken(f"a replica moves from {before.value} to {after.value}")
    return after
