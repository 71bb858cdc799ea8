"""What the silence of datacenters means: theirs, or that of our own line.

Most of those we knew fell silent within a short time: one event, and what they have in common is
this gate. A host that refuses to be called is no silence: the line to it is whole. And another
gate that reaches a datacenter proves that it is there.

A job has a patience of its own. When that is over for a datacenter, `Verdict` says what follows;
rows are looked at from above:

    this gate itself stood still      WAIT       until it has asked everybody again
    probes are answered there         LOST       the job alone is, and nothing else there
    another gate reaches it           HAND_OVER  to whoever can follow the job
    our own line is in doubt          WAIT       until that was so for `hold_s`
    else                              LOST
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from hyperscale.cluster.datacenters.settings import ProbeSettings


class Verdict(Enum):
    LOST = "lost"
    HAND_OVER = "hand over"
    WAIT = "wait"


def one_event(known: int, silent_since: Sequence[float], settings: ProbeSettings) -> bool:
    """`known`: datacenters that were ever heard. `silent_since`: when each of the silent ones was
    heard last. One alone proves nothing, and half of them is no majority."""
    ordered = sorted(silent_since)
    needed = known // 2 + 1
    if known < 2 or len(ordered) < needed:
        return False
    pairs = zip(ordered, ordered[needed - 1 :], strict=False)
    return any(last - first <= settings.together_s for first, last in pairs)


def verdict(*, answered: bool, reached_by_other: bool, line_in_doubt: bool) -> Verdict:
    if answered:
        return Verdict.LOST
    if reached_by_other:
        return Verdict.HAND_OVER
    return Verdict.WAIT if line_in_doubt else Verdict.LOST
