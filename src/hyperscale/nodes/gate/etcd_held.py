"""What a gate remembers of a job that is kept in etcd, beside what its events say."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Held:
    """One job, as far as it is known here."""

    owner: str = ""
    token: int = 0
    """The create revision of the owner's key; where there is none, the revision that took it."""
    lease: str = ""
    is_mine: bool = False
    head: int = 0
    created: int = 0
    """The head's create revision. What is older is of a job that had the same id before."""
    next: int = 0
    requests: set[str] = field(default_factory=set)
    told: dict[str, int] = field(default_factory=dict)
    """By datacenter: the number of the event that tells its numbers."""
    is_unsure: bool = False
    is_closing: bool = False
    unowned_since: float = 0.0
    not_before: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
