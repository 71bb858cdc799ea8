"""The `hyperscale` program as a user runs it: a process, its exit code, its two streams."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DEADLINE_S = 60.0
PROGRAM = [sys.executable, "-m", "hyperscale"]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The sentences after `error:`."""
        return re.findall(r"^error: (.*)$", self.err, re.MULTILINE)

    @property
    def hints(self) -> list[str]:
        return re.findall(r"^hint: +(.*)$", self.err, re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    """Without what the machine of the developer says about Hyperscale and colours."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("HYPERSCALE_", "GITHUB_")) and k != "CI"
    }
    return kept | more


def hyperscale(*words: object, cwd: Path, prefix: str = "", **env: str) -> Ended:
    """Run it to its end; `prefix` is shell text in front, such as a limit."""
    command = [*PROGRAM, *map(str, words)]
    if prefix:
        command = ["bash", "-c", f'{prefix}; exec "$@"', "bash", *command]
    process = subprocess.run(
        command,
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return Ended(process.returncode, process.stdout, process.stderr)


def _heed_ctrl_c() -> None:
    """Tests that run in the background have it ignored, and what they start inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Running:
    """The program in the background, its progress readable while it runs."""

    def __init__(self, *words: object, cwd: Path, **env: str) -> None:
        self._process = subprocess.Popen(
            [*PROGRAM, *map(str, words)],
            cwd=cwd,
            env=environment(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            preexec_fn=_heed_ctrl_c,
        )
        self._said: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        return "".join(self._said)

    def wait_until_said(self, text: str) -> None:
        self.wait_until(lambda: text in self.said, f"{text!r} on stderr")

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        until = time.monotonic() + DEADLINE_S
        while not condition():
            assert self._process.poll() is None, f"ended before {what}: {''.join(self._said)}"
            assert time.monotonic() < until, f"no {what}: {''.join(self._said)}"
            time.sleep(0.02)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def ended(self) -> Ended:
        assert self._process.stdout is not None
        out = self._process.stdout.read()
        code = self._process.wait(DEADLINE_S)
        self._listener.join(DEADLINE_S)
        return Ended(code, out, "".join(self._said))

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def assert_refused(ended: Ended, *words: str, code: int = 2) -> None:
    """One sentence on stderr with these words in it, a hint, the exit code, no traceback."""
    assert ended.code == code, ended
    assert len(ended.errors) == 1, ended.err
    sentence = ended.errors[0]
    for word in words:
        assert word in sentence, sentence
    assert "Traceback" not in ended.err + ended.out
    assert len(ended.err.splitlines()) <= 2 or code != 2, ended.err


WORKFLOW = """
from hyperscale import HTTPOptions, Workflow, step
from hyperscale.testing import URL, HTTPResponse


class Try(Workflow):
    vus = 2
    duration = "{duration}"
    {more}

    @step()
    async def get(self, url: URL = "{url}") -> HTTPResponse:
        return await self.client.http.get(url)
"""


def write_workflow(
    folder: Path, url: str, *, duration: str = "1s", more: str = "", name: str = "try.py"
) -> Path:
    file = folder / name
    file.write_text(WORKFLOW.format(url=url, duration=duration, more=more))
    return file
