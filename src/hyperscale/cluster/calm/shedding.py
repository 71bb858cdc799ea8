"""What a node no longer takes on, by the state of its load (A-39).

HIGH is shed only when overloaded, and even then not wholly: state sync is HIGH, and a node that
refuses all of it can never be helped out of its overload. `Admission` keeps a small share open.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from hyperscale.cluster.calm.priority import Priority


class Load(IntEnum):
    HEALTHY = 0
    BUSY = 1
    STRESSED = 2
    OVERLOADED = 3


SHED: Final[dict[Load, frozenset[Priority]]] = {
    Load.HEALTHY: frozenset(),
    Load.BUSY: frozenset({Priority.LOW}),
    Load.STRESSED: frozenset({Priority.NORMAL, Priority.LOW}),
    Load.OVERLOADED: frozenset({Priority.HIGH, Priority.NORMAL, Priority.LOW}),
}

RETRY_AFTER_S: Final[dict[Load, float]] = {
    Load.HEALTHY: 0.1,  # all slots taken: one is free again within a handler's time
    Load.BUSY: 0.5,
    Load.STRESSED: 1.0,
    Load.OVERLOADED: 5.0,  # no shorter than one step down of the detector's hysteresis
}
"""What a refused caller is told to wait; its own jitter comes on top."""


# The same table for the path of every message: the least important class still served.
_SERVED: Final = tuple(max(set(Priority) - SHED[load]) for load in Load)


def sheds(load: Load, priority: Priority) -> bool:
    return priority > _SERVED[load]
