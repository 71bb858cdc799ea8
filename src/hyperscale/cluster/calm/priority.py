"""Who gives way to whom when there is too much to do.

Every message kind carries one of these; the catalogue of kinds refuses a kind without. Numbers
are those on the wire and in the settings: lower is more important.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Priority(IntEnum):
    CRITICAL = 0
    """Never shed: probes and all of SWIM, leadership, cancellation, final results."""

    HIGH = 1
    """Job submission, dispatch and other commands, state sync."""

    NORMAL = 2
    """Progress, status, statistics queries, reconnection. What nobody classified."""

    LOW = 3
    """Telemetry: the newest counts, an old one may be lost."""


UNCLASSIFIED: Final = Priority.NORMAL
SHEDDABLE: Final = (Priority.HIGH, Priority.NORMAL, Priority.LOW)
