"""Results in Bigtable: `bigtable://project/instance/table`, by the REST form of its data API.

The table must be there with a column family `results`. Keys are `run#ID`, `step#ID#NUMBER` and
`series#ID#NUMBER`; a cell for each column, so that results sent twice overwrite themselves.
"""

from __future__ import annotations

import base64
from datetime import datetime
from urllib.parse import quote

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results
from hyperscale.reporting.backends.google import GoogleClient, GoogleConfig
from hyperscale.reporting.contract import Backend, Refused
from hyperscale.reporting.tables import TABLES, run_id

FAMILY = "results"
ENTRIES_MAX = 1_000  # with 15 cells each it stays far below the 100,000 mutations of a request


class BigTableConfig(GoogleConfig, frozen=True, kw_only=True):
    scheme = "bigtable"
    place_field = "project_name"
    path_field = "place"
    required = ("project_name", "place")

    project_name: str = ""
    place: str = ""  # instance/table

    def backend(self) -> Backend:
        return BigTableReporter(self)

    def check(self) -> None:
        super().check()
        if self.place.count("/") != 1:
            raise BadInput("bigtable:// needs an instance and a table", "bigtable://project/i/t")


class BigTableReporter(Backend):
    at_end = True

    def __init__(self, config: BigTableConfig) -> None:
        instance, _, table = config.place.partition("/")
        words = (config.project_name, instance, table)
        project, instance, table = (quote(word, safe="") for word in words)
        self._path = f"/v2/projects/{project}/instances/{instance}/tables/{table}"
        scope = "https://www.googleapis.com/auth/bigtable.data"
        self._client = GoogleClient(config, "https://bigtable.googleapis.com", scope)

    async def connect(self) -> None:
        await self._client.send("POST", f"{self._path}:readRows", b'{"rowsLimit":"1"}')

    async def submit_results(self, results: Results) -> None:
        run = run_id(results)
        entries = [
            {
                "rowKey": _base64(f"{table.name.removeprefix('hyperscale_')}#{run}#{number:06}"),
                "mutations": [
                    _cell(name, value) for name, value in zip(table.columns, row, strict=True)
                ],
            }
            for table in TABLES
            for number, row in enumerate(table.rows(run, results))
        ]
        for start in range(0, len(entries), ENTRIES_MAX):
            asked = msgspec.json.encode({"entries": entries[start : start + ENTRIES_MAX]})
            answer = await self._client.send("POST", f"{self._path}:mutateRows", asked)
            _check(answer.body)

    async def close(self) -> None:
        await self._client.close()


def _cell(name: str, value: object) -> dict[str, object]:
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return {
        "setCell": {
            "familyName": FAMILY,
            "columnQualifier": _base64(name),
            "timestampMicros": "0",  # the same again is the same cell
            "value": _base64(text),
        }
    }


def _check(body: bytes) -> None:
    """A stream of answers as an array, a status for each row."""
    for part in msgspec.json.decode(body or b"[]"):
        for entry in part.get("entries", ()):
            status = entry.get("status", {})
            if status.get("code"):
                raise Refused(status.get("message", str(status)))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
