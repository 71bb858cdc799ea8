"""How a coordinator proves to etcd who it is, and knows whom it speaks to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from ssl import SSLContext


@dataclass(frozen=True, kw_only=True)
class EtcdAccess:
    """The files are PEM."""

    user: str = ""
    password: str = field(default="", repr=False)
    ca: str = ""
    """Empty: the certificate authorities of the system."""
    cert: str = ""
    key: str = ""

    def tls(self) -> SSLContext:
        """Raises BadInput for files that cannot be used."""
        import ssl

        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key)
        except OSError as error:
            raise BadInput(
                f"the TLS files for etcd cannot be used: {error}",
                "etcd-ca, etcd-cert and etcd-key are PEM files",
            ) from error
        return context


ANONYMOUS: Final = EtcdAccess()
