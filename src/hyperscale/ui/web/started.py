"""Runs of test files, started from the page: each is `hyperscale run` in a process of its own, so
that code of a test never runs in the page's server, and a file is read as it is now.

One at a time: two would disturb each other's numbers.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results
from hyperscale.ui.text import one_line
from hyperscale.ui.web.hub import Hub
from hyperscale.ui.web.patches import Patch
from hyperscale.ui.web.pipe import LINE_BYTES_MAX, VARIABLE
from hyperscale.ui.web.steering import Command

TESTS_MAX: Final = 200
TEST_BYTES_MAX: Final = 1 << 20
VALUE_CHARACTERS_MAX: Final = 500
ANSWER_S: Final = 10.0
STOPS_WITHIN_S: Final = 15.0
# Of what a run prints, for the case that it cannot be carried out.
_PRINTED_BYTES: Final = 8_192
_DEPTH: Final = ("*.py", "*/*.py")


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """A test file and another load for it, as the flags of `hyperscale run` say it."""

    file: str
    vus: str = ""
    duration: str = ""
    iterations: str = ""
    rate: str = ""
    stage: str = ""  # several with blanks between them
    host: str = ""
    name: str = ""  # of the only workflow to run

    def arguments(self) -> list[str]:
        """Each as one word with its flag, so that no value can become a flag of its own."""
        flags = [f"--{key}={value}" for key in _FLAGS if (value := getattr(self, key).strip())]
        stages = [f"--stage={one}" for one in self.stage.split()]
        return [*flags, *stages, *([self.name] if self.name else [])]


_FLAGS: Final = ("vus", "duration", "iterations", "rate", "host")


class Told(msgspec.Struct):
    """A line of the run's process."""

    patch: Patch | None = None
    said: dict[str, Any] | None = None


_told = msgspec.json.Decoder(Told).decode


class StartedRuns:
    """The `Run` and the `Starter` of a page over a folder."""

    def __init__(self, folder: Path, more: Sequence[str] = ()) -> None:
        """`more` are arguments that all runs have in common."""
        self.hub = Hub()
        self._folder = folder
        self._more = list(more)
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._following: asyncio.Task[None] | None = None
        self._starting = False

    def results(self) -> Results | None:
        return None  # they are in the folder

    def tests(self) -> list[dict[str, Any]]:
        return [{"file": name, "workflows": classes} for name, classes in self._tests().items()]

    def _tests(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        paths = (path for pattern in _DEPTH for path in self._folder.glob(pattern))
        for path in sorted(paths):
            workflows = _workflows(path)
            if workflows and len(found) < TESTS_MAX:
                found[path.relative_to(self._folder).as_posix()] = workflows
        return found

    async def start(self, body: bytes) -> str:
        wanted = self._checked(body)
        if self._starting or self._process is not None:
            raise BadInput("a run is under way", "stop it first, or wait for its end")
        self._starting = True
        try:
            return await self._begin(wanted)
        finally:
            self._starting = False

    def _checked(self, body: bytes) -> Wanted:
        try:
            wanted = msgspec.json.decode(body, type=Wanted)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadInput(f"no such run can be started: {error}") from None
        values = msgspec.structs.astuple(wanted)
        if any(len(value) > VALUE_CHARACTERS_MAX or "\0" in value for value in values):
            raise BadInput(f"a field has at most {VALUE_CHARACTERS_MAX} characters")
        workflows = self._tests().get(wanted.file)
        if workflows is None:
            raise BadInput(f"there is no test file {one_line(wanted.file)!r} in the folder")
        if wanted.name and wanted.name not in workflows:
            raise BadInput(f"{wanted.file} has no workflow {one_line(wanted.name)!r}")
        return wanted

    async def _begin(self, wanted: Wanted) -> str:
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        name = f"{Path(wanted.file).stem}-{moment}.json"
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hyperscale", "run", str(self._folder / wanted.file)),
                *wanted.arguments(),
                *self._more,
                *("--quiet", f"--json={self._folder / name}"),
                env={**os.environ, VARIABLE: str(theirs.fileno())},
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        ours.setblocking(False)
        reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=LINE_BYTES_MAX)
        begun = {"file": wanted.file, "state": "starting", "run": "", "trouble": ""}
        self.hub.publish(Patch(fresh=True, set={"started": _raw(begun)}))
        following = self._follow(self._process, reader, begun, name)
        self._following = asyncio.create_task(following)
        return f"{wanted.file} starts"

    async def _follow(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        begun: dict[str, str],
        name: str,
    ) -> None:
        assert process.stderr is not None
        printed = asyncio.create_task(_end_of(process.stderr))
        try:
            async for line in reader:
                told = _told(line)
                if told.patch is not None:
                    # What is shown beside the run stays, whatever the run says of itself.
                    self.hub.publish(
                        msgspec.structs.replace(
                            told.patch,
                            set=told.patch.set | {"started": _raw(begun | {"state": "running"})},
                        )
                    )
                elif told.said is not None:
                    self._answers.put_nowait(told.said)
            await process.wait()
            wrote = (self._folder / name).exists()
            trouble = "" if wrote else (await printed).strip() or f"exit code {process.returncode}"
            ended = {"state": "ended", "run": name if wrote else "", "trouble": trouble}
            self.hub.publish(Patch(set={"started": _raw(begun | ended)}))
        finally:
            printed.cancel()
            self._process = self._writer = None

    async def steer(self, command: Command) -> str:
        if self._writer is None:
            raise BadInput("no run is under way")
        while not self._answers.empty():
            self._answers.get_nowait()
        self._writer.write(msgspec.json.encode(command) + b"\n")
        try:
            async with asyncio.timeout(ANSWER_S):
                said = await self._answers.get()
        except TimeoutError:
            raise BadInput("the run did not answer", "it may be loading its test") from None
        if not said["ok"]:
            raise BadInput(said["text"])
        return str(said["text"])

    async def close(self) -> None:
        """The run ends gracefully when its pipe is closed, or else by force."""
        process, following = self._process, self._following
        if self._writer is not None:
            self._writer.close()
        if process is not None:
            try:
                async with asyncio.timeout(STOPS_WITHIN_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if following is not None:
            following.cancel()
            await asyncio.wait({following})


_CLASS = re.compile(r"^class\s+(\w+)\s*\(([^)]*Workflow[^)]*)\)\s*:", re.MULTILINE)


def _workflows(path: Path) -> list[str]:
    """Without running the file: who lists tests does not want their code to run."""
    try:
        text = path.read_text("utf-8") if path.stat().st_size <= TEST_BYTES_MAX else ""
    except (OSError, UnicodeDecodeError):
        return []
    return [found[1] for found in _CLASS.finditer(text)] if "hyperscale" in text else []


async def _end_of(stream: asyncio.StreamReader) -> str:
    kept = b""
    while data := await stream.read(65_536):
        kept = (kept + data)[-_PRINTED_BYTES:]
    return kept.decode("utf-8", "replace")


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
