"""Results in Azure Cosmos DB: `cosmosdb://ACCOUNT.documents.azure.com/database`, by its REST API.

The database must be there with a container `hyperscale`, whose partition key is `/run`. A document
for the run, and some with the `rows` of its steps and of its timeline; their ids follow from the
run.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec

from hyperscale.metrics.results import Results
from hyperscale.reporting.backends.http import HttpPoster, origin
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.tables import TABLES, Row, Table, run_id

VERSION = "2018-12-31"
ROWS_MAX = 1_000  # of some 400 bytes; a document may have 2 MB


class CosmosDBConfig(Config, frozen=True, kw_only=True):
    scheme = "cosmosdb"
    place_field = "account"
    path_field = "database"
    environment = {"account_key": "COSMOSDB_ACCOUNT_KEY"}
    required = ("account", "account_key")

    account: str = ""  # its host
    port: int = 443
    database: str = "hyperscale"
    container: str = "hyperscale"
    account_key: str = ""
    secure: bool = True

    def backend(self) -> Backend:
        return CosmosDBReporter(self)


class CosmosDBReporter(Backend):
    at_end = True

    def __init__(self, config: CosmosDBConfig) -> None:
        self._key = base64.b64decode(config.account_key)
        database, container = quote(config.database, safe=""), quote(config.container, safe="")
        self._link = f"dbs/{database}/colls/{container}"
        self._poster = HttpPoster(origin(config.account, config.port, config.secure))

    async def connect(self) -> None:
        await self._send("GET", "colls", f"/{self._link}", b"", {})

    async def submit_results(self, results: Results) -> None:
        """The run itself comes last: where it is, all of it is."""
        run = run_id(results)
        runs, *others = TABLES
        for table in others:
            rows = _named(table, table.rows(run, results))
            for start in range(0, len(rows), ROWS_MAX):
                part = {"run": run, "rows": rows[start : start + ROWS_MAX]}
                await self._upsert(table, run, start, part)
        (row,) = _named(runs, runs.rows(run, results))
        await self._upsert(runs, run, 0, row)

    async def _upsert(
        self, table: Table, run: str, number: int, said: Mapping[str, object]
    ) -> None:
        document = {**said, "id": f"{table.name}-{run}-{number}", "about": table.name}
        headers = {
            "Content-Type": "application/json",
            "x-ms-documentdb-is-upsert": "True",
            "x-ms-documentdb-partitionkey": msgspec.json.encode([run]).decode(),
        }
        body = msgspec.json.encode(document)
        await self._send("POST", "docs", f"/{self._link}/docs", body, headers)

    async def _send(
        self, method: str, kind: str, path: str, body: bytes, headers: dict[str, str]
    ) -> None:
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        made = {
            **headers,
            "Authorization": authorization(self._key, method, kind, self._link, date),
            "x-ms-date": date,
            "x-ms-version": VERSION,
        }
        await self._poster.send(method, path, body, made)

    async def close(self) -> None:
        await self._poster.close()


def _named(table: Table, rows: list[Row]) -> list[dict[str, object]]:
    return [dict(zip(table.columns, row, strict=True)) for row in rows]


def authorization(key: bytes, method: str, kind: str, link: str, date: str) -> str:
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return quote(f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}", safe="")
