"""Names that cannot be taken twice.

The id of a schedule's instance follows from the schedule and the tick, so a tick can exist only
once, whichever coordinator makes it (S-30).
"""

from __future__ import annotations

import uuid
from typing import Final

from hyperscale.scheduler.model.instants import Instant

_INSTANCES: Final = uuid.UUID("6f3b8a1c-9d0e-5c55-8a6e-3f6d3f1f2b74")


def instance_id(schedule_id: str, tick: Instant) -> str:
    return str(uuid.uuid5(_INSTANCES, f"{schedule_id}\x00{tick}"))
