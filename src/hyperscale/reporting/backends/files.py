"""Results as files, named in the test: `JSONConfig(path="out.json")`. `-o out.json` does the same.

`xml=out.xml` writes all results as XML; `-o out.xml` is JUnit.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from hyperscale.metrics.results import Results
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.formats import check_writable, export


class FileConfig(Config, frozen=True, kw_only=True):
    place_field = ""
    path_field = "path"
    format: ClassVar[str]

    path: str

    def backend(self) -> Backend:
        return FileReporter(self)


class JSONConfig(FileConfig, frozen=True, kw_only=True):
    scheme = format = "json"
    path: str = "results.json"


class CSVConfig(FileConfig, frozen=True, kw_only=True):
    scheme = format = "csv"
    path: str = "results.csv"


class XMLConfig(FileConfig, frozen=True, kw_only=True):
    scheme = format = "xml"
    path: str = "results.xml"


class FileReporter(Backend):
    at_end = True

    def __init__(self, config: FileConfig) -> None:
        self._path, self._format = Path(config.path), config.format

    async def connect(self) -> None:
        await asyncio.to_thread(check_writable, self._path, self._format)

    async def submit_results(self, results: Results) -> None:
        await asyncio.to_thread(export, results, self._path, self._format)
