"""Settings of the process around a scheduler or a worker: where it listens, who may ask, where its
traces go. They stand beside the scheduler's own in flags, environment and `[scheduler]` table.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import is_loopback
from hyperscale.scheduler.http.access import Access, access_for
from hyperscale.scheduler.settings import ENV_PREFIX
from hyperscale.scheduler.telemetry.hook import TraceClass
from hyperscale.scheduler.telemetry.sampling import SHARES

PORT_DEFAULT: Final = 8090


class ProcessSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    port: int | None = Field(None, ge=0, le=65535)
    """0: any that is free. None: 8090 for a scheduler, no page for a worker."""
    tokens: str = ""
    open: bool = False
    """Everybody on this machine may do everything."""
    tls_cert: str = ""
    tls_key: str = ""
    plain_http: bool = False
    """Tokens may travel unencrypted: something in front does TLS, or the network is trusted."""
    otlp: str = ""
    """Where traces go, such as http://127.0.0.1:4318; empty: nowhere."""
    trace_share: float = Field(SHARES[TraceClass.JOB], ge=0, le=1)

    def access(self, admin_token: str) -> Access:
        return access_for(self.host, self.tokens, admin_token, self.open)

    def tls(self) -> ssl.SSLContext | None:
        """None: plain HTTP. Raises BadInput when a token would be readable on the way."""
        if not self.tls_cert and not self.tls_key:
            if not self.plain_http and not is_loopback(self.host):
                raise BadInput(
                    f"on {self.host} tokens would travel unencrypted",
                    "give --tls-cert and --tls-key, or --plain-http when a proxy does TLS",
                )
            return None
        if not self.tls_cert or not self.tls_key:
            raise BadInput("--tls-cert and --tls-key belong together")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise BadInput(
                f"the certificate {self.tls_cert} and key {self.tls_key} do not serve: {error}",
                "both are PEM files, and the key has no password",
            ) from error
        return context


NAMES: Final = frozenset(ProcessSettings.model_fields)


def process_settings(
    flags: Mapping[str, object], env: Mapping[str, str], table: Mapping[str, object]
) -> ProcessSettings:
    """The strongest first: flags that are not None, environment, table."""
    said: dict[str, tuple[object, str]] = {}
    for name, value in table.items():
        said[name.replace("-", "_")] = value, f"{name} in [scheduler]"
    for name in NAMES:
        if (variable := ENV_PREFIX + name.upper()) in env:
            said[name] = env[variable], variable
    for name, value in flags.items():
        if value is not None:
            said[name] = value, "--" + name.replace("_", "-")
    values: dict[str, Any] = {name: value for name, (value, _) in said.items()}
    try:
        return ProcessSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        value, where = said[str(first["loc"][0])]
        raise BadInput(f"{where}: {value!r} does not fit", first["msg"]) from None
