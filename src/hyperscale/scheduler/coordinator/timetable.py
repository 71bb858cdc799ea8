"""The ticks of a schedule's definition. Parsing is cached: it happens once, not once per tick."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

from hyperscale.scheduler.cron import Cron, DstPolicy
from hyperscale.scheduler.cron.zones import offsets_of
from hyperscale.scheduler.model.errors import InvalidJob
from hyperscale.scheduler.model.instants import Instant
from hyperscale.scheduler.model.schedule import ScheduleDefinition
from hyperscale.scheduler.policies.ticks import CronTicks, OneTick, Ticks, upcoming


def ticks_of(definition: ScheduleDefinition) -> Ticks:
    """Raises CronError, BadInput (zone) or InvalidJob (DST policy)."""
    if definition.run_at is not None:
        _policy(definition.dst)
        offsets_of(definition.zone)
        return OneTick(definition.run_at)
    return _cron_ticks(definition.cron, definition.zone, definition.dst)


@lru_cache(maxsize=20_000)
def _cron_ticks(text: str, zone: str, dst: str) -> Ticks:
    cron = Cron.parse(text)
    # The expression's own zone suffix counts unless the schedule names another than the default.
    own = cron.fields.timezone
    return CronTicks(cron, own if own is not None and zone == "UTC" else zone, _policy(dst))


def _policy(dst: str) -> DstPolicy:
    try:
        return DstPolicy(dst)
    except ValueError:
        near = get_close_matches(dst.lower(), list(DstPolicy), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(DstPolicy)}"
        raise InvalidJob(f"{dst!r} is not a DST policy", hint) from None


def preview(definition: ScheduleDefinition, behind: Instant, count: int) -> list[Instant]:
    return list(islice(upcoming(definition, ticks_of(definition), behind), count))
