"""Results as an object of Google Cloud Storage: `gs://bucket/prefix`."""

from __future__ import annotations

from urllib.parse import quote

from hyperscale.metrics.results import Results, encode
from hyperscale.reporting.backends.google import GoogleClient, GoogleConfig
from hyperscale.reporting.backends.s3 import object_name
from hyperscale.reporting.contract import Backend


class GoogleCloudStorageConfig(GoogleConfig, frozen=True, kw_only=True):
    scheme = "gs"
    place_field = "bucket"
    path_field = "prefix"
    required = ("bucket",)

    bucket: str = ""
    prefix: str = ""

    def backend(self) -> Backend:
        return GCSReporter(self)


class GCSReporter(Backend):
    at_end = True

    def __init__(self, config: GoogleCloudStorageConfig) -> None:
        self._bucket, self._prefix = quote(config.bucket, safe=""), config.prefix
        scope = "https://www.googleapis.com/auth/devstorage.read_write"
        self._client = GoogleClient(config, "https://storage.googleapis.com", scope)

    async def connect(self) -> None:
        await self._client.send("GET", f"/storage/v1/b/{self._bucket}/o?maxResults=1")

    async def submit_results(self, results: Results) -> None:
        name = quote(object_name(self._prefix, results), safe="")
        path = f"/upload/storage/v1/b/{self._bucket}/o?uploadType=media&name={name}"
        await self._client.send("POST", path, encode(results))

    async def close(self) -> None:
        await self._client.close()
