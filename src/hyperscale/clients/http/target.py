"""What a URL means to HTTP: where to connect, what to ask for, as whom.

Parsed once per URL. Hosts become ASCII (IDNA), user information becomes Basic authorisation,
fragments are dropped, and characters that may not stand in a request line are percent-encoded.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, quote, unquote_to_bytes, urljoin, urlsplit

from hyperscale.clients.net.host_names import ascii_host
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import basic_auth

DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE = "/%:@!$&'()*+,;=~-._?[]|"
_ESCAPED_BYTE = re.compile(r"[\udc80-\udcff]")


class Target:
    """`host` is what to connect to, with the zone of a link-local IPv6 address; `host_header` what
    the server is told, which is without it (RFC 6874)."""

    __slots__ = ("_asked", "auth", "host", "host_header", "path", "port", "query", "scheme", "url")

    def __init__(self, text: str, base_url: str = "") -> None:
        if text.startswith("/") and base_url:
            text = base_url.rstrip("/") + text
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise BadInput(f"{text!r} is not a URL: {error}") from None
        if parts.scheme not in DEFAULT_PORTS:
            raise BadInput(f"{text!r} is not a URL that HTTP can call", _hint(text))
        if not parts.hostname:
            raise BadInput(f"{text!r} names no host")
        self.scheme = parts.scheme
        self.host = ascii_host(parts.hostname, text)
        self.port = DEFAULT_PORTS[parts.scheme] if port is None else port
        address, _, zone = self.host.partition("%") if ":" in self.host else (self.host, "", "")
        after = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        self.host_header = (f"[{address}]" if ":" in address else address) + after
        try:
            self.path = quote(parts.path or "/", safe=_SAFE)
            self.query = quote(parts.query, safe=_SAFE)
            self.auth = _user_info(parts)
        except UnicodeEncodeError:
            raise BadInput(f"{text!r} is not a URL: it contains what is not text") from None
        question = "?" if "?" in text.partition("#")[0] else ""
        self._asked = f"{self.path}{question}{self.query}"
        reached = f"[{address}%25{zone}]{after}" if zone else self.host_header
        self.url = f"{self.scheme}://{reached}{self._asked}"

    def with_query(self, extra: str) -> str:
        """The path and query asked for; `extra` is a query string with its `?`."""
        if not extra:
            return self._asked
        return f"{self._asked}&{extra[1:]}" if self.query else self.path + extra

    def resolve(self, location: str) -> str:
        """A redirect's location, which may be relative, as a full URL.

        Bytes in it that are not UTF-8 (surrogates, by `errors="surrogateescape"`) stay what they
        were, percent-encoded.
        """
        try:
            return urljoin(self.url, _ESCAPED_BYTE.sub(_percent, location))
        except ValueError as error:
            raise BadInput(f"{location!r} is not a URL: {error}") from None


def _percent(escaped: re.Match[str]) -> str:
    return f"%{ord(escaped[0]) & 0xFF:02X}"


def _hint(text: str) -> str:
    if not text.startswith("/"):
        return "write http://host/path or https://host/path"
    return (
        "name its host: --host https://shop.example, or host = 'https://shop.example' "
        "in the workflow"
    )


def _user_info(parts: SplitResult) -> str:
    if not parts.username and not parts.password:
        return ""
    return basic_auth(
        unquote_to_bytes(parts.username or ""), unquote_to_bytes(parts.password or "")
    )
