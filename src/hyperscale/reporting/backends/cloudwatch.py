"""Points as metrics of Amazon CloudWatch: `cloudwatch://namespace`.

At a resolution of a second, in requests of as many values as the service takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

from hyperscale.reporting.backends.aws import AwsClient, AwsConfig
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points

VALUES_MAX = 1_000
DIMENSIONS_MAX = 30
_UNITS = {"bytes_in": "Bytes", "bytes_out": "Bytes", "elapsed_s": "Seconds"}


class CloudwatchConfig(AwsConfig, frozen=True, kw_only=True):
    scheme = "cloudwatch"
    place_field = "namespace"

    namespace: str = "hyperscale"

    def backend(self) -> Backend:
        return CloudwatchReporter(self)


class CloudwatchReporter(Backend):
    live = True
    every_s = 5.0  # a request costs money, and takes the values of many seconds

    def __init__(self, config: CloudwatchConfig) -> None:
        self._namespace = config.namespace
        self._client = AwsClient(
            config, "monitoring", f"monitoring.{config.region_name}.amazonaws.com"
        )

    async def connect(self) -> None:
        await self._ask({"Action": "ListMetrics", "Namespace": self._namespace})

    async def submit(self, points: Sequence[Points]) -> None:
        values = list(_values(points))
        for start in range(0, len(values), VALUES_MAX):
            asked = {"Action": "PutMetricData", "Namespace": self._namespace}
            for number, value in enumerate(values[start : start + VALUES_MAX], 1):
                asked |= {f"MetricData.member.{number}.{key}": text for key, text in value.items()}
            await self._ask(asked)

    async def _ask(self, asked: dict[str, str]) -> None:
        body = urlencode({**asked, "Version": "2010-08-01"}).encode()
        await self._client.send(
            "POST", "/", body, {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
        )

    async def close(self) -> None:
        await self._client.close()


def _values(points: Sequence[Points]) -> Iterator[dict[str, str]]:
    for each in points:
        moment = datetime.fromtimestamp(each.time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for row in each.rows:
            labels = [(k, v) for k, v in {**row.labels, **each.common}.items() if v]
            dimensions = {
                f"Dimensions.member.{place}.{key}": text[:1024]
                for place, (name, value) in enumerate(labels[:DIMENSIONS_MAX], 1)
                for key, text in (("Name", name[:255]), ("Value", value))
            }
            for name, value in (*row.counts.items(), *row.gauges.items()):
                other = "Count" if name in row.counts else "None"
                unit = "Milliseconds" if name.endswith("_ms") else _UNITS.get(name, other)
                yield {
                    "MetricName": f"{row.about}_{name}", "Value": repr(value), "Unit": unit,
                    "Timestamp": moment, "StorageResolution": "1", **dimensions,
                }  # fmt: skip
