"""`loadtest`: a test file through `hyperscale run`, as a person would start it in the directory of
the worker's tests.

Payload: `file` (beneath that directory), `workflows` (JSON list), `args` (JSON list of flags). The
log begins with the run's summary as one line of JSON. A crossed threshold or a bad test file is an
answer, not an accident: neither is tried again.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec

from hyperscale.errors import ExitCode
from hyperscale.scheduler.executors.contract import Broken, Done, Result, Task, permanent
from hyperscale.scheduler.executors.loadtest_words import checked_words, file_beneath
from hyperscale.scheduler.executors.payload import decoded, required
from hyperscale.scheduler.executors.processes import Exited, run_process
from hyperscale.scheduler.model.errors import InvalidJob
from hyperscale.scheduler.model.failure import Failure

SUMMARY_BYTES_MAX: Final = 16 * 1024
_FINAL: Final = {
    ExitCode.BAD_INPUT: "the test file or an option cannot be used",
    ExitCode.THRESHOLDS_CROSSED: "a threshold was crossed",
}


class LoadtestExecutor:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def run(self, task: Task) -> Result:
        try:
            words = await asyncio.to_thread(self._words, task)
        except InvalidJob as error:
            return permanent(f"{error.message}; {error.hint}" if error.hint else error.message)
        with tempfile.TemporaryDirectory(prefix="hyperscale-loadtest-") as directory:
            report = Path(directory) / "result.json"
            argv = [sys.executable, "-m", "hyperscale", "run", *words]
            argv += ["--ui", "none", "--json", str(report)]
            try:
                exited = await run_process(argv, cwd=str(self._directory))
            except OSError as error:
                return Broken(failure=Failure.EXHAUSTED, error=f"no process: {error}")
            summary = await asyncio.to_thread(_summary, report)
        return _judged(exited, summary)

    def _words(self, task: Task) -> list[str]:
        file = file_beneath(self._directory, required(task.payload, "file"))
        workflows = decoded(task.payload, "workflows", list[str], [])
        flags = decoded(task.payload, "args", list[str], [])
        if not all(name.isidentifier() for name in workflows):  # another might be read as a file
            raise InvalidJob("'workflows' in the payload: each is the name of a class")
        if task.payload.get("cluster"):
            raise InvalidJob(
                "'cluster' in the payload: a job does not choose where it runs",
                "the worker's owner does, with HYPERSCALE_CLUSTER in its environment",
            )
        return [str(file), *workflows, *checked_words(self._directory, flags)]

    async def close(self) -> None:
        """Nothing outlives a job."""


def _judged(exited: Exited, summary: str) -> Result:
    log = f"{summary}\n{exited.log}" if summary else exited.log
    if exited.code == 0:
        return Done(exit_code=0, log=log)
    reason = _FINAL.get(ExitCode(exited.code)) if exited.code in list(ExitCode) else None
    return Broken(
        failure=Failure.ERROR if reason is None else Failure.PERMANENT,
        error=f"the load test ended with {exited.code}" + (f": {reason}" if reason else ""),
        exit_code=exited.code,
        log=log,
    )


def _summary(report: Path) -> str:
    """Of the result file what is plain: texts and numbers, and tables of them."""
    try:
        document: Any = msgspec.json.decode(report.read_bytes())
    except (OSError, msgspec.DecodeError):
        return ""
    if not isinstance(document, dict):
        return ""
    plain = {key: value for key, value in document.items() if not isinstance(value, list)}
    line = msgspec.json.encode(plain)
    if len(line) > SUMMARY_BYTES_MAX:
        flat = {k: v for k, v in plain.items() if not isinstance(v, dict)}
        line = msgspec.json.encode(flat)
    return line.decode() if len(line) <= SUMMARY_BYTES_MAX else ""
