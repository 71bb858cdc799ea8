"""The emergency stop: while it is on, nobody gets a job and no tick fires (S-96)."""

from __future__ import annotations

from typing import Final

import msgspec

from hyperscale.scheduler.model.instants import Instant

REASON_CHARS_MAX: Final = 500


class Emergency(msgspec.Struct, frozen=True, kw_only=True):
    since: Instant
    actor: str
    reason: str = ""
    cancel_running: bool = False
    """What is claimed is cancelled too, and what runs is asked to stop."""
