"""`/api/v1/schedules`: made, changed, paused, run by hand, looked into the future of."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from hyperscale.scheduler.errors import InvalidJob, NotFound
from hyperscale.scheduler.http.answers import (
    FiredView,
    Preview,
    ScheduleList,
    ScheduleView,
)
from hyperscale.scheduler.http.context import Asked, Operator, Viewer
from hyperscale.scheduler.http.history_answers import RunList, RunView
from hyperscale.scheduler.http.requests import (
    ID_PATTERN,
    BackfillRequest,
    PreviewRequest,
    ScheduleChange,
    ScheduleEdit,
    ScheduleRequest,
)
from hyperscale.scheduler.instants import instant_of, moment_of
from hyperscale.scheduler.schedules.cron import CronError, check
from hyperscale.scheduler.schedules.cron.coming_runs import coming_runs
from hyperscale.scheduler.schedules.cron.words import in_words
from hyperscale.scheduler.schedules.schedule import Fired, Schedule
from hyperscale.scheduler.schedules.ticks import preview

router = APIRouter(prefix="/api/v1/schedules", tags=["schedules"])

ScheduleId = Annotated[str, Path(pattern=ID_PATTERN)]


@router.post("", status_code=201)
async def create_schedule(body: ScheduleRequest, asked: Operator) -> ScheduleView:
    async with asked.recorded("schedule.create", body.id):
        definition = body.definition(body.id)
        schedule = await asked.context.service.add_schedule(body.id, definition)
    return ScheduleView.of(schedule, body.job.adjustment())


@router.get("")
async def list_schedules(
    asked: Viewer,
    cursor: Annotated[str, Query(max_length=63)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ScheduleList:
    """By id."""
    found = await asked.context.service.store.schedules(cursor, limit)
    following = found[-1].id if len(found) == limit else ""
    return ScheduleList(schedules=[ScheduleView.of(one) for one in found], cursor=following)


@router.post("/preview")
async def preview_expression(body: PreviewRequest, asked: Viewer) -> Preview:
    """What an expression means, before anything is made of it."""
    parsed = check(body.cron)
    if parsed.cron is None:
        raise CronError(body.cron, parsed.errors)
    zone = parsed.cron.fields.timezone or body.timezone
    now = moment_of(asked.context.service.now())
    runs = coming_runs(parsed.cron, now, zone, body.count, body.dst)
    return Preview(
        runs=[run.instant for run in runs],
        words=in_words(parsed.cron.fields),
        warnings=[problem.message for problem in parsed.warnings],
    )


@router.get("/{schedule_id}")
async def get_schedule(schedule_id: ScheduleId, asked: Viewer) -> ScheduleView:
    return ScheduleView.of(await _found(schedule_id, asked))


@router.put("/{schedule_id}")
async def change_schedule(
    schedule_id: ScheduleId, body: ScheduleChange, asked: Operator
) -> ScheduleView:
    """409 when somebody changed it since `version` was read."""
    async with asked.recorded("schedule.change", schedule_id, f"from version {body.version}"):
        known = await _found(schedule_id, asked)
        definition = body.definition(known.definition.name)
        changed = await asked.context.service.change_schedule(schedule_id, body.version, definition)
    return ScheduleView.of(changed, body.job.adjustment())


@router.patch("/{schedule_id}")
async def edit_schedule(
    schedule_id: ScheduleId, body: ScheduleEdit, asked: Operator
) -> ScheduleView:
    """Changes what is given; 409 when it is not of `version` any more."""
    changes = ", ".join(sorted(body.model_fields_set))
    async with asked.recorded("schedule.change", schedule_id, changes):
        known = await _found(schedule_id, asked)
        definition = body.applied(known.definition)
        version = body.version or known.version
        changed = await asked.context.service.change_schedule(schedule_id, version, definition)
    return ScheduleView.of(changed, None if body.job is None else body.job.adjustment())


@router.delete("/{schedule_id}")
async def delete_schedule(schedule_id: ScheduleId, asked: Operator) -> ScheduleView:
    """Jobs made already live on."""
    async with asked.recorded("schedule.delete", schedule_id):
        return ScheduleView.of(await asked.context.service.store.delete_schedule(schedule_id))


@router.post("/{schedule_id}/pause")
async def pause_schedule(schedule_id: ScheduleId, asked: Operator) -> ScheduleView:
    async with asked.recorded("schedule.pause", schedule_id):
        return ScheduleView.of(await asked.context.service.pause(schedule_id))


@router.post("/{schedule_id}/resume")
async def resume_schedule(schedule_id: ScheduleId, asked: Operator) -> ScheduleView:
    async with asked.recorded("schedule.resume", schedule_id):
        return ScheduleView.of(await asked.context.service.resume(schedule_id))


@router.post("/{schedule_id}/run", status_code=201)
async def run_schedule(schedule_id: ScheduleId, asked: Operator) -> FiredView:
    """Now, aside from its ticks."""
    async with asked.recorded("schedule.run", schedule_id):
        return _fired(await asked.context.service.trigger(schedule_id))


@router.post("/{schedule_id}/backfill", status_code=201)
async def backfill_schedule(
    schedule_id: ScheduleId, body: BackfillRequest, asked: Operator
) -> FiredView:
    """Every tick in [start, end) that has no job yet."""
    async with asked.recorded("schedule.backfill", schedule_id, f"{body.start} to {body.end}"):
        if body.end <= body.start:
            raise InvalidJob("a backfill must end after it starts")
        start, end = instant_of(body.start), instant_of(body.end)
        return _fired(await asked.context.service.backfill(schedule_id, start, end))


@router.get("/{schedule_id}/preview")
async def preview_schedule(
    schedule_id: ScheduleId, asked: Viewer, count: Annotated[int, Query(ge=1, le=100)] = 10
) -> Preview:
    """The coming runs, as if it were not paused."""
    schedule = await _found(schedule_id, asked)
    behind = max(schedule.cursor, asked.context.service.now())
    coming = preview(schedule.definition, behind, count)
    return Preview(runs=[moment_of(tick) for tick in coming])


@router.get("/{schedule_id}/history")
async def schedule_history(
    schedule_id: ScheduleId,
    asked: Viewer,
    cursor: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> RunList:
    """What became of its instances, newest first; also of those whose jobs are no longer kept, and
    of a schedule that was deleted."""
    runs = await asked.context.service.store.history(schedule_id, cursor, limit)
    following = runs[-1].key if len(runs) == limit else ""
    return RunList(runs=[RunView.of(run) for run in runs], cursor=following)


async def _found(schedule_id: str, asked: Asked) -> Schedule:
    schedule = await asked.context.service.store.schedule(schedule_id)
    if schedule is None:
        raise NotFound("schedule", schedule_id)
    return schedule


def _fired(fired: Fired) -> FiredView:
    return FiredView(
        jobs=[job.id for job in fired.jobs], existing=fired.existing, skipped=fired.skipped
    )
