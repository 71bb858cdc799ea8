"""Test files for clusters. Load is gentle: faults are told from starvation by what it does."""

from __future__ import annotations

from pathlib import Path

HEAD = """
import os

from hyperscale import Workflow, action, depends, state, step
from hyperscale.graph import Provide, Use
from hyperscale.testing import URL, HTTPResponse

TARGET = {url!r}
"""

STEADY = """
class Steady(Workflow):
    vus = {vus}
    {length}
    think_time = "{think}"
    {more}

    @step()
    async def get(self, url: URL = TARGET + "{path}") -> HTTPResponse:
        return await self.client.http.get(url)
"""


def write(folder: Path, url: str, text: str, name: str = "load.py") -> Path:
    file = folder / name
    file.write_text(HEAD.format(url=url) + text)
    return file


def steady(
    folder: Path,
    url: str,
    *,
    duration: str = "2s",
    iterations: int = 0,
    vus: int = 4,
    think: str = "5ms",
    path: str = "/",
    more: str = "",
    name: str = "steady.py",
) -> Path:
    length = f"iterations = {iterations}" if iterations else f'duration = "{duration}"'
    text = STEADY.format(vus=vus, length=length, think=think, path=path, more=more)
    return write(folder, url, text, name)
