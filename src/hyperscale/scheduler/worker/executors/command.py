"""`command`: a program with its arguments, never through a shell. Off unless enabled, because
whoever may submit a job could otherwise run anything.

Payload: `argv` (JSON list), `env` (JSON object), `cwd`. Exit code 0 is success; 75 (EX_TEMPFAIL)
asks for another try elsewhere.
"""

from __future__ import annotations

import os
from typing import Final

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors.executor import (
    Broken,
    Done,
    Result,
    Task,
    decoded,
    permanent,
)
from hyperscale.scheduler.worker.executors.orphans import Children
from hyperscale.scheduler.worker.executors.processes import run_process

EX_TEMPFAIL: Final = 75


class CommandExecutor:
    def __init__(self, children: Children) -> None:
        self._children = children

    async def run(self, task: Task) -> Result:
        try:
            argv = decoded(task.payload, "argv", list[str], [])
            env = decoded(task.payload, "env", dict[str, str], {})
        except InvalidJob as error:
            return permanent(error.message)
        if not argv:
            return permanent("the payload has no 'argv'")
        env = {
            **env,
            "HYPERSCALE_JOB_ID": task.job_id,
            "HYPERSCALE_FENCING_TOKEN": str(task.token),
        }
        try:
            cwd = task.payload.get("cwd") or None
            exited = await run_process(argv, self._children, env, cwd, lambda _: task.moved())
        except (FileNotFoundError, PermissionError, NotADirectoryError, ValueError) as error:
            return permanent(f"{argv[0]!r} cannot be run: {error}")
        except OSError as error:
            return Broken(
                failure=Failure.EXHAUSTED,
                error=f"no process: {os.strerror(error.errno)}"
                if error.errno
                else f"no process: {error}",
            )
        if exited.code == 0:
            return Done(exit_code=0, log=exited.log)
        failure = Failure.EXHAUSTED if exited.code == EX_TEMPFAIL else Failure.ERROR
        return Broken(
            failure=failure,
            error=f"{argv[0]} ended with {exited.code}",
            exit_code=exited.code,
            log=exited.log,
        )

    async def close(self) -> None:
        """Nothing outlives a job."""
