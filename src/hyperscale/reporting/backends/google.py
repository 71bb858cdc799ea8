"""Requests to Google Cloud: a service account signs who it is, and gets a token for an hour."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import msgspec

from hyperscale.errors import BadInput
from hyperscale.reporting.backends.http import Answer, HttpPoster
from hyperscale.reporting.config import Config

_RENEWED_S = 300.0  # before its end
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class GoogleConfig(Config, frozen=True, kw_only=True):
    environment = {
        "service_account_json_path": "GOOGLE_APPLICATION_CREDENTIALS",
        "token": "GOOGLE_OAUTH_ACCESS_TOKEN",
    }

    service_account_json_path: str = ""
    token: str = ""  # instead: `gcloud auth print-access-token`
    endpoint_url: str = ""  # instead of Google itself: an emulator, which wants no credentials

    def check(self) -> None:
        super().check()
        if not (self.service_account_json_path or self.token or self.endpoint_url):
            raise BadInput(
                f"{self.scheme}:// needs credentials",
                "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, "
                "or GOOGLE_OAUTH_ACCESS_TOKEN",
            )


class _Account(msgspec.Struct):
    client_email: str
    private_key: str
    token_uri: str = "https://oauth2.googleapis.com/token"
    private_key_id: str = ""


class GoogleClient:
    """Of one service, for one scope."""

    def __init__(self, config: GoogleConfig, base: str, scope: str) -> None:
        self._config = config
        self._scope = scope
        self._poster = HttpPoster(config.endpoint_url or base)
        self._token = config.token
        self._until_s = float("inf") if config.token else 0.0

    async def send(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json"
    ) -> Answer:
        headers = {"Content-Type": kind}
        if self._config.service_account_json_path or self._config.token:
            headers["Authorization"] = f"Bearer {await self._bearer()}"
        return await self._poster.send(method, path, body, headers)

    async def _bearer(self) -> str:
        if time.time() > self._until_s - _RENEWED_S:
            account = self._account()
            poster = HttpPoster(account.token_uri)
            body = f"grant_type={_GRANT}&assertion={assertion(account, self._scope, time.time())}"
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            answer = msgspec.json.decode((await poster.send("POST", "", body.encode(), kind)).body)
            await poster.close()
            self._token = answer["access_token"]
            self._until_s = time.time() + float(answer.get("expires_in", 3600))
        return self._token

    def _account(self) -> _Account:
        path = self._config.service_account_json_path
        try:
            return msgspec.json.decode(Path(path).read_bytes(), type=_Account)
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise BadInput(f"{path} is no key file of a service account: {error}") from error

    async def close(self) -> None:
        await self._poster.close()


def assertion(account: _Account, scope: str, now_s: float) -> str:
    """A JSON web token, signed by the account's key."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    head = {"alg": "RS256", "typ": "JWT", "kid": account.private_key_id}
    claims = {
        "iss": account.client_email, "scope": scope, "aud": account.token_uri,
        "iat": int(now_s), "exp": int(now_s) + 3600,
    }  # fmt: skip
    text = f"{_base64(msgspec.json.encode(head))}.{_base64(msgspec.json.encode(claims))}"
    key = serialization.load_pem_private_key(account.private_key.encode(), None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise BadInput("the private_key of the service account is no RSA key")
    return f"{text}.{_base64(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
