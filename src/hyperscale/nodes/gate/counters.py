"""What happened to the jobs of a gate since it started, in counters that never fall."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    taken: Counter[str] = field(default_factory=Counter)  # jobs, "new" or "taken over"
    told: Counter[str] = field(default_factory=Counter)  # updates, by datacenter
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)  # by datacenter and status
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)  # by datacenter and why
    late: int = 0
    aborted: int = 0
