"""Requests to AWS: where its services are, and the signature (version 4) that each request bears.

Credentials are fields of the config or the usual environment variables. Sixty lines here spare an
SDK of tens of megabytes.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from hyperscale.reporting.backends.http import Answer, HttpPoster
from hyperscale.reporting.config import AWS_ENVIRONMENT, Config


class AwsConfig(Config, frozen=True, kw_only=True):
    environment = AWS_ENVIRONMENT
    required: ClassVar[Sequence[str]] = (
        "aws_access_key_id", "aws_secret_access_key", "region_name",
    )  # fmt: skip

    aws_access_key_id: str = ""
    aws_secret_access_key: str = ""
    aws_session_token: str = ""
    region_name: str = ""
    endpoint_url: str = ""  # instead of AWS itself: MinIO, LocalStack, a VPC endpoint


class AwsClient:
    """Of one service."""

    def __init__(self, config: AwsConfig, service: str, host: str, signed_as: str = "") -> None:
        self._config = config
        self._service = signed_as or service
        self._poster = HttpPoster(config.endpoint_url or f"https://{host}")

    async def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        now = datetime.now(UTC)
        given = {"Host": self._poster.host, **(headers or {})}
        made = signed(self._config, self._service, method, path, given, body, now)
        return await self._poster.send(method, path, body, made)

    async def call(self, target: str, version: str, message: object) -> bytes:
        """The JSON protocol that CloudWatch, Timestream and others share."""
        headers = {"Content-Type": f"application/x-amz-json-{version}", "X-Amz-Target": target}
        answer = await self.send("POST", "/", msgspec.json.encode(message), headers)
        return answer.body

    async def close(self) -> None:
        await self._poster.close()


def signed(
    config: AwsConfig,
    service: str,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
) -> dict[str, str]:
    """The headers with those of the signature. S3 wants a path encoded once, others twice."""
    moment, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = hashlib.sha256(body).hexdigest()
    made = {**headers, "X-Amz-Date": moment, "X-Amz-Content-Sha256": digest}
    if config.aws_session_token:
        made["X-Amz-Security-Token"] = config.aws_session_token
    parts = urlsplit(path)
    place = parts.path if service == "s3" else quote(parts.path, safe="/-_.~")
    query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(parse_qsl(parts.query, keep_blank_values=True))
    )
    lower = {name.lower(): " ".join(value.split()) for name, value in made.items()}
    names = ";".join(sorted(lower))
    lines = "".join(f"{name}:{lower[name]}\n" for name in sorted(lower))
    request = "\n".join((method, place or "/", query, lines, names, digest))
    scope = f"{day}/{config.region_name}/{service}/aws4_request"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", moment, scope, hashed))
    key = f"AWS4{config.aws_secret_access_key}".encode()
    for part in (day, config.region_name, service, "aws4_request"):
        key = _hmac(key, part)
    made["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={config.aws_access_key_id}/{scope}, "
        f"SignedHeaders={names}, Signature={_hmac(key, text).hex()}"
    )
    return made


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
