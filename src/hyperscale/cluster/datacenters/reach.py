"""Whether a gate reaches a datacenter: any answer of any of its managers says so."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Reach(Enum):
    REACHABLE = "reachable"
    SUSPECTED = "suspected"
    UNREACHABLE = "unreachable"  # also before the first answer


class Event(Enum):
    ANSWERED = "answered"
    MISSED_TOO_OFTEN = "missed too many probes"
    SILENT_TOO_LONG = "was silent for too long"


TRANSITIONS: Final[dict[Reach, dict[Event, Reach]]] = {
    Reach.UNREACHABLE: {Event.ANSWERED: Reach.REACHABLE},
    Reach.REACHABLE: {Event.MISSED_TOO_OFTEN: Reach.SUSPECTED},
    Reach.SUSPECTED: {
        Event.ANSWERED: Reach.REACHABLE,
        Event.SILENT_TOO_LONG: Reach.UNREACHABLE,
    },
}
