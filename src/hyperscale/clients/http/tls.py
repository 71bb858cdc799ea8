"""The TLS settings of a workflow as one context, shared by all its connections."""

from __future__ import annotations

import ssl
from pathlib import Path

from hyperscale.errors import BadInput
from hyperscale.workload.http_options import HTTPOptions


def tls_context(options: HTTPOptions) -> ssl.SSLContext:
    ca = Path(options.ca).expanduser() if options.ca else None
    try:
        context = ssl.create_default_context(
            cafile=str(ca) if ca and not ca.is_dir() else None,
            capath=str(ca) if ca and ca.is_dir() else None,
        )
    except OSError as error:
        raise BadInput(
            f"http.ca {options.ca} cannot be used: {error.strerror or error}",
            "it must be a PEM file or a directory of them",
        ) from error
    if not options.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.cert:
        try:
            # An empty password: a prompt would hang the run.
            context.load_cert_chain(options.cert, options.key, password="")
        except OSError as error:
            raise BadInput(
                f"http.cert {options.cert} cannot be used: {error.strerror or error}",
                "it must be PEM, and its key unencrypted and in the same file or in http.key",
            ) from error
    context.set_alpn_protocols(["http/1.1"])
    return context
