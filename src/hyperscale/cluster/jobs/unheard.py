"""Iterations that a lost part may have done after it was last heard.

Nobody can tell which of them were. They are left out when the rest goes on elsewhere: rather some
that nobody does, which coverage tells, than one done twice, which nobody would see. A worker that
comes back in time tells how many it really did, and what was left out is made in the end. Of an
attempt that was lost before its leader had heard of any load nobody knows, so it is given up.
"""

from __future__ import annotations

import math

# Generators tell their worker ten times a second, and that tells its leader twice as often.
TOLD_AFTER_S = 0.25
# The last seconds may have been faster than those before.
UNEVEN = 1.25
# Its worker and all that had heard of it are gone: it may have made each of them.
ANY_NUMBER = 1 << 40


def unheard(pace: float, silent_s: float) -> int:
    """`pace` is in iterations a second."""
    return math.ceil(UNEVEN * pace * (silent_s + TOLD_AFTER_S))
