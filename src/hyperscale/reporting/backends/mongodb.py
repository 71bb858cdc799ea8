"""Results in MongoDB, by PyMongo: `mongodb://user:password@host:27017/database`.

Three collections, of the same names and fields as the tables of other databases. The `_id` of a
document follows from its run and place, so that results sent twice are stored once.
"""

from __future__ import annotations

import importlib
from typing import Any

from hyperscale.metrics.results import Results
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.tables import TABLES, run_id


class MongoDBConfig(Config, frozen=True, kw_only=True):
    scheme = "mongodb"
    path_field = "database"
    options_field = "options"

    host: str = "localhost"
    port: int = 27017
    database: str = "hyperscale"
    username: str = ""
    password: str = ""
    options: dict[str, str] = {}  # of a connection string, such as authSource

    def backend(self) -> Backend:
        return MongoDBReporter(self)


class MongoDBReporter(Backend):
    needs = "pymongo"
    extra = "mongodb"
    at_end = True

    def __init__(self, config: MongoDBConfig) -> None:
        self._config = config
        self._client: Any = None

    async def connect(self) -> None:
        pymongo = importlib.import_module("pymongo")
        config = self._config
        who = {"username": config.username, "password": config.password} if config.username else {}
        where = f"[{config.host}]" if ":" in config.host else config.host
        options = "&".join(f"{name}={value}" for name, value in config.options.items())
        self._client = pymongo.AsyncMongoClient(
            f"mongodb://{where}:{config.port}/{'?' if options else ''}{options}",
            serverSelectionTimeoutMS=3_000, appname="hyperscale", **who,
        )  # fmt: skip
        await self._client.admin.command("ping")

    async def submit_results(self, results: Results) -> None:
        """The run itself comes last: where it is, all of it is."""
        run = run_id(results)
        database = self._client[self._config.database]
        runs, *others = TABLES
        if await database[runs.name].find_one({"_id": run}) is not None:
            return
        for table in others:
            documents = [
                {"_id": f"{run}-{number}", **dict(zip(table.columns, row, strict=True))}
                for number, row in enumerate(table.rows(run, results))
            ]
            await database[table.name].delete_many({"run": run})
            if documents:
                await database[table.name].insert_many(documents)
        (row,) = runs.rows(run, results)
        await database[runs.name].insert_one(
            {"_id": run, **dict(zip(runs.columns, row, strict=True))}
        )

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
