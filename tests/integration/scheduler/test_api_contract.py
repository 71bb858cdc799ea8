"""The OpenAPI document against the application: schemathesis makes requests up from it.

`positive_data_acceptance` is left out: a cron expression, a zone or an end before its start cannot
be told in JSON Schema, and they are answered with 400.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyperscale.scheduler.http.access import Role
from hyperscale.scheduler.http.app import create_app
from hyperscale.scheduler.http.serving import bind, serving
from hyperscale.scheduler.service import Scheduler
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.telemetry.metrics import Metrics
from tests.unit.scheduler.http.harness import TOKENS, tokens

EXAMPLES = os.environ.get("TESTS_SCHEMATHESIS_EXAMPLES", "2")
PROGRAM = Path(sys.executable).with_name("schemathesis")


@contextmanager
def running() -> Iterator[str]:
    """On a real socket, in a thread of its own."""
    listener = bind("127.0.0.1", 0)
    started, stop, loops = threading.Event(), asyncio.Event(), []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        settings = SchedulerSettings(worker=False, node="node-1")
        async with (
            Scheduler(settings, store=Store(MemoryGround())) as scheduler,
            serving(create_app(scheduler, tokens(), Metrics()), listener),
        ):
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(30)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(30)


def test_every_answer_is_one_the_document_tells_of(tmp_path: Path) -> None:
    with running() as url:
        done = subprocess.run(
            [
                *(str(PROGRAM), "run", f"{url}/api/v1/openapi.json"),
                *("--header", f"Authorization: Bearer {TOKENS[Role.ADMIN]}"),
                *("--exclude-checks", "positive_data_acceptance"),
                *("--max-examples", EXAMPLES, "--seed", "1", "--generation-deterministic"),
                *("--phases", "examples,coverage,fuzzing", "--request-timeout", "30"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
