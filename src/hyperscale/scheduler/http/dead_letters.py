"""`/api/v1/dead-letters`: jobs that failed for good, until somebody replays or drops them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from hyperscale.scheduler.errors import NotFound
from hyperscale.scheduler.http.answers import JobView, LetterList, LetterView
from hyperscale.scheduler.http.context import Operator, Viewer
from hyperscale.scheduler.http.requests import ID_PATTERN

router = APIRouter(prefix="/api/v1/dead-letters", tags=["dead letters"])

JobId = Annotated[str, Path(pattern=ID_PATTERN)]


@router.get("")
async def list_letters(
    asked: Viewer,
    cursor: Annotated[str, Query(max_length=63)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> LetterList:
    found = await asked.context.service.store.letters(cursor, limit)
    following = found[-1].id if len(found) == limit else ""
    return LetterList(letters=[LetterView.of(one) for one in found], cursor=following)


@router.get("/{job_id}")
async def get_letter(job_id: JobId, asked: Viewer) -> LetterView:
    letter = await asked.context.service.store.letter(job_id)
    if letter is None:
        raise NotFound("dead letter", job_id)
    return LetterView.of(letter)


@router.post("/{job_id}/replay", status_code=201)
async def replay_letter(job_id: JobId, asked: Operator) -> JobView:
    """A new job like the dead one, whose letter goes away in the same step."""
    async with asked.recorded("letter.replay", job_id):
        service = asked.context.service
        return JobView.of(await service.store.replay(job_id, service.new_id(), service.now()))


@router.delete("/{job_id}")
async def drop_letter(job_id: JobId, asked: Operator) -> LetterView:
    async with asked.recorded("letter.drop", job_id):
        return LetterView.of(await asked.context.service.store.drop(job_id))
