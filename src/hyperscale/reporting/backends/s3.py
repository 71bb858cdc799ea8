"""Results as an object of S3, or of what speaks its protocol: `s3://bucket/prefix`.

The object is PREFIX/NAME-TIME-ID.json; the id follows from the results, so that results sent twice
are stored once.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from hyperscale.metrics.results import Results, encode
from hyperscale.reporting.backends.aws import AwsClient, AwsConfig
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.tables import run_id


class S3Config(AwsConfig, frozen=True, kw_only=True):
    scheme = "s3"
    place_field = "bucket"
    path_field = "prefix"
    required = ("bucket", *AwsConfig.required)

    bucket: str = ""
    prefix: str = ""

    def backend(self) -> Backend:
        return S3Reporter(self)


class S3Reporter(Backend):
    at_end = True

    def __init__(self, config: S3Config) -> None:
        host = f"{config.bucket}.s3.{config.region_name}.amazonaws.com"
        # Other servers rarely have a name for each bucket.
        self._root = f"/{config.bucket}/" if config.endpoint_url else "/"
        self._prefix = config.prefix
        self._client = AwsClient(config, "s3", host)

    async def connect(self) -> None:
        """The bucket is there and may be listed."""
        await self._client.send("GET", f"{self._root}?list-type=2&max-keys=1")

    async def submit_results(self, results: Results) -> None:
        path = self._root + quote(object_name(self._prefix, results), safe="/-_.~")
        await self._client.send("PUT", path, encode(results), {"Content-Type": "application/json"})

    async def close(self) -> None:
        await self._client.close()


def object_name(prefix: str, results: Results) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", results.name).strip("-") or "run"
    moment = re.sub(r"[-:]|\+00:00$", "", results.started_at) or "unknown"
    start = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    return f"{start}{name}-{moment}-{run_id(results)[:8]}.json"
