"""Which messages a node refuses first when it has too much to do.

Every message kind has a priority; the catalogue of kinds refuses a kind without. A node refuses
classes by the level of its load. It refuses HIGH only when it is overloaded, and even then not
wholly: state sync is HIGH, and a node that refuses all of it can never be helped out of its
overload. `Admission` keeps a small share open.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Priority(IntEnum):
    """The numbers are those on the wire and in the settings: lower is more important."""

    CRITICAL = 0
    """Never shed: probes and all of SWIM, leadership, cancellation, final results."""

    HIGH = 1
    """Job submission, dispatch and other commands, state sync."""

    NORMAL = 2
    """Progress, status, statistics queries, reconnection. What nobody classified."""

    LOW = 3
    """Telemetry: the newest counts, an old one may be lost."""


SHEDDABLE: Final = (Priority.HIGH, Priority.NORMAL, Priority.LOW)


class LoadLevel(IntEnum):
    HEALTHY = 0
    BUSY = 1
    STRESSED = 2
    OVERLOADED = 3


SHED: Final[dict[LoadLevel, frozenset[Priority]]] = {
    LoadLevel.HEALTHY: frozenset(),
    LoadLevel.BUSY: frozenset({Priority.LOW}),
    LoadLevel.STRESSED: frozenset({Priority.NORMAL, Priority.LOW}),
    LoadLevel.OVERLOADED: frozenset({Priority.HIGH, Priority.NORMAL, Priority.LOW}),
}

RETRY_AFTER_S: Final[dict[LoadLevel, float]] = {
    LoadLevel.HEALTHY: 0.1,  # all slots taken: one is free again within a handler's time
    LoadLevel.BUSY: 0.5,
    LoadLevel.STRESSED: 1.0,
    LoadLevel.OVERLOADED: 5.0,  # no shorter than one step down of the detector's hysteresis
}
"""What a refused caller is told to wait; its own jitter comes on top."""


# The same table for the path of every message: the least important class still served.
_SERVED: Final = tuple(max(set(Priority) - SHED[load]) for load in LoadLevel)


def sheds(load: LoadLevel, priority: Priority) -> bool:
    return priority > _SERVED[load]
