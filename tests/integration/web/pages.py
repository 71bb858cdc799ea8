"""A real Chromium before a real `hyperscale`, against a real target."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_MS = 60_000
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

TEST = """
import os
from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ["TARGET"]


class Shop(Workflow):
    vus = 3
    duration = "10m"
    think_time = "20ms"
    thresholds = ["http_req_failed: rate<1%"]

    @step()
    async def browse(self, url: URL = f"{TARGET}/json") -> HTTPResponse:
        return await self.client.http.get(url)

    @step("browse")
    async def pay(self, url: URL = f"{TARGET}/status/503") -> HTTPResponse:
        answer = await self.client.http.get(url)
        if answer.status_code != 200:
            raise ValueError("<img src=x onerror=alert(1)>")
        return answer
"""


@contextmanager
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the page is not tested")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield found
        found.close()


def opened(browser: Any, url: str, **context: Any) -> Any:
    own = browser.new_context(**context)
    own.set_default_timeout(WAIT_MS)
    page = own.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on(
        "console",
        # A server that is away is what the page waits for.
        lambda line: (
            page.errors.append(line.text)
            if line.type == "error" and "ERR_" not in line.text
            else None
        ),
    )
    page.goto(url)
    return page


class Program:
    """`hyperscale` with these words, until it is ended; `url` is where it said its page is."""

    def __init__(self, words: list[str], said: Path, **variables: str) -> None:
        self._said = said
        with said.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hyperscale", *words],
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def url(self) -> str:
        while (found := re.search(r"http://\S+", self.said)) is None:
            assert self.process.poll() is None, self.said
            _a_moment(self.process)
        return found[0]

    def ends(self) -> int:
        return self.process.wait(60)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _a_moment(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        return


@contextmanager
def program(words: list[str], directory: Path, **variables: str) -> Iterator[Program]:
    running = Program(words, directory / "said.txt", **variables)
    try:
        yield running
    finally:
        running.stop()
