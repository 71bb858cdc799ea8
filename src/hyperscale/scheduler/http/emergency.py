"""`/api/v1/emergency`: stop everything at once, say why, and let it go on."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from hyperscale.scheduler.http.context import Admin, Viewer
from hyperscale.scheduler.instants import moment_of
from hyperscale.scheduler.queue.emergency_stop import REASON_CHARS_MAX
from hyperscale.scheduler.store.claim_guard import Emergency

router = APIRouter(prefix="/api/v1/emergency", tags=["emergency"])

TARGET = "scheduler"


class StopRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=REASON_CHARS_MAX)
    cancel_running: StrictBool = Field(
        False, description="also cancel what is claimed and ask what runs to stop"
    )


class EmergencyView(BaseModel):
    stopped: bool
    since: datetime | None = None
    actor: str = ""
    reason: str = ""
    cancel_running: bool = False

    @classmethod
    def of(cls, emergency: Emergency | None) -> EmergencyView:
        if emergency is None:
            return cls(stopped=False)
        return cls(
            stopped=True,
            since=moment_of(emergency.since),
            actor=emergency.actor,
            reason=emergency.reason,
            cancel_running=emergency.cancel_running,
        )


@router.get("")
async def get_emergency(asked: Viewer) -> EmergencyView:
    return EmergencyView.of(await asked.context.service.emergency())


@router.post("")
async def stop_everything(body: StopRequest, asked: Admin) -> EmergencyView:
    """No job starts and no schedule ticks until it is ended. A second stop keeps who and why of
    the first, and may add `cancel_running`."""
    async with asked.recorded("emergency.stop", TARGET, body.reason):
        stopped = await asked.context.service.emergency_stop(
            asked.actor.name, body.reason, body.cancel_running
        )
    return EmergencyView.of(stopped)


@router.delete("")
async def end_emergency(asked: Admin) -> EmergencyView:
    """Answers with what has ended. Missed ticks are judged by each schedule's misfire policy."""
    async with asked.recorded("emergency.resume", TARGET):
        return EmergencyView.of(await asked.context.service.emergency_resume())
