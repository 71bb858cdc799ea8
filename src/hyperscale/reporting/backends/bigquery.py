"""Results in BigQuery: `bigquery://project/dataset`. The dataset must be there, its tables are
made."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

import msgspec

from hyperscale.metrics.results import Results
from hyperscale.reporting.backends.google import GoogleClient, GoogleConfig
from hyperscale.reporting.contract import Backend, Refused
from hyperscale.reporting.tables import TABLES, Row, Table, run_id

_TYPES = {
    str: "STRING", int: "INTEGER", float: "FLOAT", bool: "BOOLEAN", datetime: "TIMESTAMP",
}  # fmt: skip
ROWS_MAX = 500
_CONFLICT = 409


class BigQueryConfig(GoogleConfig, frozen=True, kw_only=True):
    scheme = "bigquery"
    place_field = "project_name"
    path_field = "dataset_name"
    required = ("project_name",)

    project_name: str = ""
    dataset_name: str = "hyperscale"

    def backend(self) -> Backend:
        return BigQueryReporter(self)


class BigQueryReporter(Backend):
    at_end = True

    def __init__(self, config: BigQueryConfig) -> None:
        project, dataset = quote(config.project_name, safe=""), quote(config.dataset_name, safe="")
        self._place = {"projectId": config.project_name, "datasetId": config.dataset_name}
        self._path = f"/bigquery/v2/projects/{project}/datasets/{dataset}/tables"
        scope = "https://www.googleapis.com/auth/bigquery"
        self._client = GoogleClient(config, "https://bigquery.googleapis.com", scope)

    async def connect(self) -> None:
        answer = await self._client.send("GET", f"{self._path}?maxResults=1000")
        listed = msgspec.json.decode(answer.body).get("tables", [])
        there = {one["tableReference"]["tableId"] for one in listed}
        for table in TABLES:
            if table.name not in there:
                await self._client.send("POST", self._path, msgspec.json.encode(self._made(table)))

    def _made(self, table: Table) -> dict[str, object]:
        fields = [
            {"name": name, "type": _TYPES[kind], "mode": "REQUIRED"}
            for name, kind in table.columns.items()
        ]
        reference = {**self._place, "tableId": table.name}
        return {"tableReference": reference, "schema": {"fields": fields}}

    async def submit_results(self, results: Results) -> None:
        """BigQuery drops rows whose insertId it has seen within the last minutes; a run that is
        sent again later is there twice."""
        run = run_id(results)
        for table in TABLES:
            rows = table.rows(run, results)
            for start in range(0, len(rows), ROWS_MAX):
                await self._insert(table, run, start, rows[start : start + ROWS_MAX])

    async def _insert(self, table: Table, run: str, start: int, rows: list[Row]) -> None:
        asked = {
            "rows": [
                {
                    "insertId": f"{run}-{number}",
                    "json": dict(zip(table.columns, row, strict=True)),
                }
                for number, row in enumerate(rows, start)
            ]
        }
        path = f"{self._path}/{table.name}/insertAll"
        answer = await self._client.send("POST", path, msgspec.json.encode(asked))
        errors = msgspec.json.decode(answer.body).get("insertErrors")
        if errors:
            raise Refused(f"{table.name}: {errors[0]}")

    async def close(self) -> None:
        await self._client.close()
