"""`loadtest`: a test file through `hyperscale run`, as a person would start it in the directory of
the worker's tests.

Payload: `file` (beneath that directory), `workflows` (JSON list), `args` (JSON list of flags): how
much load, how it is judged, tags and variables. Nothing that writes or reads files of its choice,
and nothing that moves the run to another place (of the datacenters of a cluster that the worker's
owner chose, `--dc` may name some): whoever may submit a job shall not become the user
whom the worker runs as. The log begins with the run's summary as one line of JSON. A crossed
threshold or a bad test file is an answer, not an accident: neither is tried again.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hyperscale.errors import ExitCode
from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors.executor import (
    Broken,
    Done,
    Result,
    Task,
    decoded,
    permanent,
    required,
)
from hyperscale.scheduler.worker.executors.loadtest_report import (
    LAST_GOOD,
    Kept,
    figures,
    kept,
    tolerance_of,
    worse,
)
from hyperscale.scheduler.worker.executors.orphans import Children
from hyperscale.scheduler.worker.executors.processes import Exited, run_process

ENV_FILE: Final = "--env-file"
VALUED: Final = frozenset(
    {
        *("-u", "--vus", "--users", "--vus-each", "-d", "--duration", "--run-time"),
        *("-i", "--iterations", "-s", "--stage", "--rate", "--max-vus", "--rps", "--host"),
        *("--threshold", "--exit-code-on-error", "--summary-trend-stats", "--timeout", "--seed"),
        *("--dc", "--tag", "-w", "--workers", "--processes", "-e", "--env", "--secret", ENV_FILE),
    }
)
"""Each takes the word behind it."""
PLAIN: Final = frozenset(
    {"--insecure-skip-tls-verify", "--no-thresholds", "-q", "--quiet", "-v", "--verbose"}
)
_STEERING: Final = re.compile(
    r"(PYTHON|LD_|DYLD_|HYPERSCALE_|SSL|OPENSSL|GLIBC_|GCONV_|MALLOC_|XDG_).*"
    r"|PATH|HOME|TMPDIR|TEMP|TMP|BROWSER|ENV|BASH_ENV|IFS|LOCPATH|NLSPATH|HOSTALIASES"
)
"""Variables that choose which code the interpreter, the loader or a library runs, or which files
they write, before the test sees them."""


def file_beneath(directory: Path, name: str) -> Path:
    """The file beneath the directory, symbolic links followed. Raises InvalidJob."""
    try:
        found = (directory / name).resolve(strict=True)
        beneath = found.is_file() and found.is_relative_to(directory.resolve())
    except (OSError, ValueError, RuntimeError):  # a link in a circle is a RuntimeError
        beneath = False
    if not beneath:
        raise InvalidJob(
            f"{name!r} is no file beneath the directory of this worker's tests",
            "its owner names that with --loadtest-dir",
        )
    return found


def checked_words(directory: Path, words: Sequence[str]) -> list[str]:
    """The same words, files made absolute. Raises InvalidJob."""
    return list(_checked(directory, iter(words)))


def _checked(directory: Path, words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if word in PLAIN:
            yield word
            continue
        flag, value = _parted(word)
        if flag not in VALUED:
            raise InvalidJob(
                f"'args' in the payload: {flag or word!r} is not for jobs",
                "they choose load, thresholds, tags and variables",
            )
        if value is None and (value := next(words, None)) is None:
            raise InvalidJob(f"'args' in the payload: {flag} has no value")
        if flag in ("-e", "--env") and _STEERING.fullmatch(value.partition("=")[0].strip()):
            raise InvalidJob(f"'args' in the payload: {flag} must not set this variable")
        yield flag
        yield str(file_beneath(directory, value)) if flag == ENV_FILE else value


def _parted(word: str) -> tuple[str, str | None]:
    """Flag and value in one word: `--vus=5`, `-u5`."""
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        return flag, value if equals else None
    return (word[:2], word[2:] or None) if word.startswith("-") else ("", None)


_PROGRESS: Final = re.compile(rb"\s(?P<name>\S+)\s.*\srequests=(?P<count>\d+)\s")
SUMMARY_BYTES_MAX: Final = 16 * 1024
_FINAL: Final = {
    ExitCode.BAD_INPUT: "the test file or an option cannot be used",
    ExitCode.THRESHOLDS_CROSSED: "a threshold was crossed",
}


class Requests:
    """Whether a run moves: it tells every few seconds how many requests it has sent, also when
    they are as many as before."""

    def __init__(self, moved: Callable[[], None]) -> None:
        self._moved = moved
        self._counts: dict[bytes, bytes] = {}

    def written(self, data: bytes) -> None:
        for line in data.splitlines():
            found = _PROGRESS.search(line)
            if found is not None and self._counts.get(found["name"]) == found["count"]:
                continue
            if found is not None:
                self._counts[found["name"]] = found["count"]
            self._moved()


class LoadtestExecutor:
    def __init__(self, directory: Path, children: Children) -> None:
        self._directory = directory
        self._children = children

    async def run(self, task: Task) -> Result:
        try:
            words = await asyncio.to_thread(self._words, task)
            tolerance = _compared_to(task)
        except InvalidJob as error:
            return permanent(f"{error.message}; {error.hint}" if error.hint else error.message)
        with tempfile.TemporaryDirectory(prefix="hyperscale-loadtest-") as directory:
            report = Path(directory) / "result.json"
            argv = [sys.executable, "-m", "hyperscale", "run", *words]
            argv += ["--ui", "ci", "--json", str(report)]
            written = Requests(task.moved).written
            try:
                exited = await run_process(
                    argv, self._children, cwd=str(self._directory), written=written
                )
            except OSError as error:
                return Broken(failure=Failure.EXHAUSTED, error=f"no process: {error}")
            summary = await asyncio.to_thread(_summary, report)
            measured = await asyncio.to_thread(kept, report)
        result = _judged(exited, summary, measured)
        if tolerance is None or measured is None or not isinstance(result, Done):
            return result
        return await _unless_worse(task, result, measured, tolerance)

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


def _compared_to(task: Task) -> float | None:
    """The tolerance, if it shall be compared at all. Raises InvalidJob."""
    wanted = task.payload.get("compare")
    tolerance = tolerance_of(task.payload.get("tolerance"))
    if wanted not in (None, LAST_GOOD):
        raise InvalidJob(f"'compare' in the payload takes {LAST_GOOD}, not {wanted!r}")
    return None if wanted is None else tolerance


async def _unless_worse(task: Task, result: Done, measured: Kept, tolerance: float) -> Result:
    before = await task.last_good()
    if before is None:
        return result
    reason = await asyncio.to_thread(worse, before, measured.results, tolerance)
    if not reason:
        return result
    return Broken(
        failure=Failure.PERMANENT,
        error=f"worse than the last good run: {reason}",
        exit_code=result.exit_code,
        log=result.log,
        figures={**result.figures, "worse": 1.0},
        results=result.results,
    )


def _judged(exited: Exited, summary: str, measured: Kept | None) -> Result:
    log = f"{summary}\n{exited.log}" if summary else exited.log
    told = {} if measured is None else figures(measured.results)
    packed = b"" if measured is None else measured.packed
    if exited.code == 0:
        return Done(exit_code=0, log=log, figures=told, results=packed)
    reason = _FINAL.get(ExitCode(exited.code)) if exited.code in list(ExitCode) else None
    return Broken(
        failure=Failure.ERROR if reason is None else Failure.PERMANENT,
        error=f"the load test ended with {exited.code}" + (f": {reason}" if reason else ""),
        exit_code=exited.code,
        log=log,
        figures=told,
        results=packed,
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
