"""Points in Amazon Timestream: `timestream://database/table`. Both must be there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hyperscale.reporting.backends.aws import AwsClient, AwsConfig
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points

RECORDS_MAX = 100
_CALL = "Timestream_20181101"


class AWSTimestreamConfig(AwsConfig, frozen=True, kw_only=True):
    scheme = "timestream"
    place_field = "database"
    path_field = "table"

    database: str = "hyperscale"
    table: str = "hyperscale_points"

    def backend(self) -> Backend:
        return AWSTimestreamReporter(self)


class AWSTimestreamReporter(Backend):
    live = True

    def __init__(self, config: AWSTimestreamConfig) -> None:
        self._config = config
        self._client = self._at(f"ingest.timestream.{config.region_name}.amazonaws.com")
        self._place = {"DatabaseName": config.database, "TableName": config.table}

    def _at(self, host: str) -> AwsClient:
        return AwsClient(self._config, "timestream", host)

    async def connect(self) -> None:
        """An account has its own host, which the service tells."""
        if not self._config.endpoint_url:
            answer = await self._client.call(f"{_CALL}.DescribeEndpoints", "1.0", {})
            await self._client.close()
            self._client = self._at(msgspec.json.decode(answer)["Endpoints"][0]["Address"])
        await self._client.call(f"{_CALL}.DescribeTable", "1.0", self._place)

    async def submit(self, points: Sequence[Points]) -> None:
        """Records of the same time and dimensions are one: what is sent twice is stored once."""
        records = list(_records(points))
        for start in range(0, len(records), RECORDS_MAX):
            asked = {**self._place, "Records": records[start : start + RECORDS_MAX]}
            await self._client.call(f"{_CALL}.WriteRecords", "1.0", asked)

    async def close(self) -> None:
        await self._client.close()


def _records(points: Sequence[Points]) -> Iterator[dict[str, object]]:
    for each in points:
        for row in each.rows:
            labels = {**each.common, **row.labels}
            values = [
                *(_value(name, count, "BIGINT") for name, count in row.counts.items()),
                *(_value(name, value, "DOUBLE") for name, value in row.gauges.items()),
            ]
            if values:
                yield {
                    "Dimensions": [{"Name": k, "Value": v} for k, v in labels.items() if v],
                    "MeasureName": row.about,
                    "MeasureValueType": "MULTI",
                    "MeasureValues": values,
                    "Time": str(round(each.time_s * 1000)),
                    "TimeUnit": "MILLISECONDS",
                }


def _value(name: str, value: float, kind: str) -> dict[str, str]:
    return {"Name": name, "Value": repr(value), "Type": kind}
