"""The calls of a store, as metrics and traces name them."""

from __future__ import annotations

from typing import Final

from hyperscale.scheduler.telemetry.hook import Call, TraceClass

_QUEUE, _WORKERS = TraceClass.QUEUE, TraceClass.WORKERS

SUBMIT: Final = Call("submit", _QUEUE)
CLAIM: Final = Call("claim", _QUEUE)
REPORT: Final = Call("report", _QUEUE)
REPORT_BATCH: Final = Call("report_batch", _QUEUE)
CANCEL: Final = Call("cancel", _QUEUE)
RETRY: Final = Call("retry", _QUEUE)
FIRE: Final = Call("fire", _QUEUE)
PROMOTE: Final = Call("promote", _QUEUE)
EXPIRE: Final = Call("expire", _QUEUE)
REPLAY: Final = Call("replay", _QUEUE)
DROP: Final = Call("drop", _QUEUE)
AGE: Final = Call("age")
PURGE: Final = Call("purge")

REGISTER: Final = Call("register", _WORKERS)
BEAT: Final = Call("beat", _WORKERS)
MOVE_WORKER: Final = Call("move_worker", _WORKERS)
RECOVER_WORKER: Final = Call("recover_worker", _WORKERS)
REMOVE_WORKER: Final = Call("remove_worker", _WORKERS)

CREATE_SCHEDULE: Final = Call("create_schedule")
UPDATE_SCHEDULE: Final = Call("update_schedule")
DELETE_SCHEDULE: Final = Call("delete_schedule")

JOB: Final = Call("job")
JOBS: Final = Call("jobs")
ATTEMPTS: Final = Call("attempts")
HISTORY: Final = Call("history")
RESULTS: Final = Call("results")
LOG: Final = Call("log")
COUNTS: Final = Call("counts")
TIME: Final = Call("time")
NEXT_DUE: Final = Call("next_due")
SCHEDULE: Final = Call("schedule")
SCHEDULES: Final = Call("schedules")
DUE_SCHEDULES: Final = Call("due_schedules")
NEXT_SCHEDULE_AT: Final = Call("next_schedule_at")
LETTERS: Final = Call("letters")
LETTER: Final = Call("letter")
WORKER: Final = Call("worker")
WORKERS: Final = Call("workers")
AUDIT: Final = Call("audit")
AUDITS: Final = Call("audits")

GET: Final = Call("get", coordinates=True)
PUT: Final = Call("put", coordinates=True)
DELETE: Final = Call("delete", coordinates=True)
EPOCH: Final = Call("epoch", coordinates=True)
RAISE_EPOCH: Final = Call("raise_epoch", TraceClass.COORDINATION, coordinates=True)
