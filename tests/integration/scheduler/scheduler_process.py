"""`hyperscale scheduler` as a real process on a port of its own, and the command line beside it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hyperscale.scheduler.http.client import SchedulerClient

T = TypeVar("T")

START_DEADLINE_S = 60.0
DEADLINE_S = 60.0


class SchedulerProcess:
    """Open to everybody on this machine, unless it has tokens or is to make one (`guarded`)."""

    def __init__(self, directory: Path, *options: str, guarded: bool = False, **env: str) -> None:
        self.directory = directory
        if not guarded and "--tokens" not in options and "HYPERSCALE_SCHEDULER_TOKEN" not in env:
            options = (*options, "--open")
        self._env = {
            **os.environ,
            "XDG_STATE_HOME": str(directory / "state"),
            "HYPERSCALE_SCHEDULER_URL": "",
            **env,
        }
        self._errors = directory / "scheduler.err"
        command = [sys.executable, "-m", "hyperscale", "scheduler", "--port", "0"]
        store = f"sqlite:{directory / 'jobs.db'}"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, "--store", store, *options],
                stderr=errors,
                env=self._env,
                cwd=directory,
            )
        self.url = self._address()

    def _address(self) -> str:
        deadline = time.monotonic() + START_DEADLINE_S
        while True:
            said = self._errors.read_text()
            found = re.search(r"scheduler at (\S+)", said)
            if found:
                return found[1]
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)  # between looks, until the deadline

    def token(self) -> str:
        """The one it made."""
        return (self.state / "token").read_text().strip()

    @property
    def state(self) -> Path:
        return self.directory / "state" / "hyperscale" / "scheduler"

    def said(self) -> str:
        """On its stderr, until now."""
        return self._errors.read_text()

    def client(self, token: str = "") -> SchedulerClient:
        return SchedulerClient(self.url, token)

    def command(self, *words: str, expect: int = 0) -> str:
        """What `hyperscale WORDS` prints."""
        done = subprocess.run(
            [sys.executable, "-m", "hyperscale", *words],
            env={**self._env, "HYPERSCALE_SCHEDULER_URL": self.url},
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + (done.stderr if expect else "")

    def json(self, *words: str) -> Any:
        return json.loads(self.command(*words, "--json"))

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextmanager
def scheduler_process(
    directory: Path, *options: str, guarded: bool = False, **env: str
) -> Iterator[SchedulerProcess]:
    running = SchedulerProcess(directory, *options, guarded=guarded, **env)
    try:
        yield running
    finally:
        running.stop()


def until(look: Callable[[], T | None], what: str) -> T:
    """The first thing `look` finds."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.1)  # between looks, until the deadline
