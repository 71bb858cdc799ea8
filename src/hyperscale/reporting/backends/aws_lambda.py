"""Results handed to a function of AWS Lambda: `lambda://function`.

The function gets the JSON of the results without histograms, which would not fit into the 6 MB of
a call.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from hyperscale.metrics.results import Distribution, Results
from hyperscale.reporting.backends.aws import AwsClient, AwsConfig
from hyperscale.reporting.contract import Backend, Refused


class AWSLambdaConfig(AwsConfig, frozen=True, kw_only=True):
    scheme = "lambda"
    place_field = "function"
    required = ("function", *AwsConfig.required)

    function: str = ""

    def backend(self) -> Backend:
        return AWSLambdaReporter(self)


class AWSLambdaReporter(Backend):
    at_end = True

    def __init__(self, config: AWSLambdaConfig) -> None:
        self._path = f"/2015-03-31/functions/{quote(config.function, safe='')}"
        host = f"lambda.{config.region_name}.amazonaws.com"
        self._client = AwsClient(config, "lambda", host)

    async def connect(self) -> None:
        await self._client.send("GET", f"{self._path}/configuration")

    async def submit_results(self, results: Results) -> None:
        """A function that raises has refused them."""
        body = msgspec.json.encode(_brief(msgspec.to_builtins(results)))
        answer = await self._client.send(
            "POST", f"{self._path}/invocations", body, {"Content-Type": "application/json"}
        )
        if any(name.lower() == "x-amz-function-error" for name in answer.headers):
            raise Refused(f"the function failed: {answer.body[:300].decode('utf-8', 'replace')}")

    async def close(self) -> None:
        await self._client.close()


_HISTOGRAM = frozenset({"buckets", "counts"})
_DISTRIBUTION = frozenset(Distribution.__struct_fields__)


def _brief(value: object) -> object:
    if isinstance(value, dict):
        left_out = _HISTOGRAM if value.keys() == _DISTRIBUTION else ()
        return {name: _brief(one) for name, one in value.items() if name not in left_out}
    return [_brief(one) for one in value] if isinstance(value, list) else value
