"""Settings of the process around a scheduler or a worker: where it listens, who may ask, where its
traces go; and of whoever asks one. They stand beside the scheduler's own in flags, environment and
`[scheduler]` table.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

from hyperscale.config.sections import Reading, Section, defaults_of
from hyperscale.config.values import Kind, share, whole
from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import is_loopback
from hyperscale.scheduler.http.access import Access, access_for
from hyperscale.scheduler.http.client import DEFAULT_URL
from hyperscale.scheduler.settings import KEEP, OWN
from hyperscale.scheduler.telemetry.hook import TraceClass
from hyperscale.scheduler.telemetry.sampling import SHARES

PORT_DEFAULT: Final = 8090


@dataclass(frozen=True, kw_only=True)
class ProcessSettings:
    host: str = "127.0.0.1"
    port: int | None = None
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
    trace_share: float = SHARES[TraceClass.JOB]

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


_DECLARED: Final = {
    **defaults_of(ProcessSettings),
    "port": Kind(whole(0, 65535)),
    "trace_share": Kind(share, SHARES[TraceClass.JOB]),
}
_ASKING: Final = {"url": DEFAULT_URL, "token": "", "ca": ""}
_ALL: Final = {**OWN, **_DECLARED, **_ASKING}
_SECTION: Final = Section(
    "scheduler",
    _ALL,
    flags=tuple(_ALL),
    secret=frozenset({"etcd_password", "token"}),
    spelled={"worker": "--no-worker", "capabilities": "--capability"},
)
SECTIONS: Final = (_SECTION.without("url", "ca"), KEEP)
ASKING_SECTIONS: Final = (_SECTION.only(*_ASKING, "plain_http"), KEEP.only())
"""Of the commands that ask a scheduler."""


def process_settings(reading: Reading) -> ProcessSettings:
    """Raises BadInput. `reading` is of `SECTIONS`."""
    return ProcessSettings(**{name: reading.of("scheduler", name).value for name in _DECLARED})
