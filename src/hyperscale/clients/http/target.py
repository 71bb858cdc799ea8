"""What a URL means to HTTP: where to connect, what to ask for, as whom.

Parsed once per URL. Hosts become ASCII (IDNA), user information becomes Basic authorisation,
fragments are dropped, and characters that may not stand in a request line are percent-encoded.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urljoin, urlsplit

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import basic_auth

DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE = "/%:@!$&'()*+,;=~-._?[]|"
_HOST = re.compile(r"[A-Za-z0-9._~%!$&'()*+,;=-]+|\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]")


class Target:
    __slots__ = ("auth", "host", "host_header", "path", "port", "query", "scheme", "url")

    def __init__(self, text: str, base_url: str = "") -> None:
        if text.startswith("/") and base_url:
            text = base_url.rstrip("/") + text
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise BadInput(f"{text!r} is not a URL: {error}") from None
        if parts.scheme not in DEFAULT_PORTS:
            hint = "write http://host/path or https://host/path"
            if text.startswith("/"):
                hint = (
                    "name its host: --host https://shop.example, or host = 'https://shop.example' "
                    "in the workflow"
                )
            raise BadInput(f"{text!r} is not a URL that HTTP can call", hint)
        if not parts.hostname:
            raise BadInput(f"{text!r} names no host")
        self.scheme = parts.scheme
        self.host = ascii_host(parts.hostname, text)
        self.port = DEFAULT_PORTS[parts.scheme] if port is None else port
        bracketed = f"[{self.host}]" if ":" in self.host else self.host
        default = self.port == DEFAULT_PORTS[self.scheme]
        self.host_header = bracketed if default else f"{bracketed}:{self.port}"
        self.path = quote(parts.path or "/", safe=_SAFE)
        self.query = quote(parts.query, safe=_SAFE)
        self.auth = ""
        if parts.username or parts.password:
            self.auth = basic_auth(unquote(parts.username or ""), unquote(parts.password or ""))
        question = f"?{self.query}" if self.query else ""
        self.url = f"{self.scheme}://{self.host_header}{self.path}{question}"

    def with_query(self, extra: str) -> str:
        """The path and query asked for; `extra` is a query string with its `?`."""
        if not extra:
            return f"{self.path}?{self.query}" if self.query else self.path
        return f"{self.path}?{self.query}&{extra[1:]}" if self.query else self.path + extra

    def resolve(self, location: str) -> str:
        """A redirect's location, which may be relative, as a full URL."""
        try:
            return urljoin(self.url, location)
        except ValueError as error:
            raise BadInput(f"{location!r} is not a URL: {error}") from None


def ascii_host(host: str, text: str) -> str:
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise BadInput(f"the host of {text!r} is not a valid name") from None
    host = host.rstrip(".") or host
    if len(host) > 253 or not _HOST.fullmatch(f"[{host}]" if ":" in host else host):
        raise BadInput(f"the host of {text!r} is not a valid name")
    return host.lower()
