"""What a URL means to HTTP: where to connect, what to ask for, as whom.

Parsed once per URL. Hosts become ASCII (IDNA), user information becomes Basic authorisation,
fragments are dropped, and characters that may not stand in a request line are percent-encoded.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, quote, unquote_to_bytes, urljoin, urlsplit

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import basic_auth

DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE = "/%:@!$&'()*+,;=~-._?[]|"
_ESCAPED_BYTE = re.compile(r"[\udc80-\udcff]")
_HOST = re.compile(r"[A-Za-z0-9._~%!$&'()*+,;=-]+|\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._~-]+)?\]")
_LABEL_CHARACTERS_MAX = 63


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


def ascii_host(host: str, text: str) -> str:
    """A host as DNS and servers know it; of an IPv6 address with its zone."""
    if not host.isascii():
        host = _punycode(host, text)
    host = host.rstrip(".") or host
    if len(host) > 253 or not _HOST.fullmatch(f"[{host}]" if ":" in host else host):
        raise _bad_host(text)
    if ":" not in host:
        return host.lower()
    address, percent, zone = host.partition("%")
    if zone.startswith("25") and len(zone) > 2:  # a URL writes the % of a zone as %25
        zone = zone[2:]
    return address.lower() + percent + zone  # "Eth0" and "eth0" are two interfaces


def _punycode(host: str, text: str) -> str:
    """By UTS 46 without its transitional rules, as browsers and curl do.

    `idna.encode` would refuse what browsers call, such as emoji and underscores.
    """
    import idna  # its tables take 10 ms to load, for names that few tests have

    try:
        mapped = idna.uts46_remap(host, std3_rules=False, transitional=False)
        labels = [
            label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")
            for label in mapped.split(".")
        ]
    except UnicodeError:  # of which idna's own errors are a kind
        raise _bad_host(text) from None
    if any(len(label) > _LABEL_CHARACTERS_MAX for label in labels) or "" in labels[:-1]:
        raise _bad_host(text)
    if any(label.startswith("xn--xn--") for label in labels):
        raise _bad_host(text)
    return ".".join(labels)


def _percent(escaped: re.Match[str]) -> str:
    return f"%{ord(escaped[0]) & 0xFF:02X}"


def _bad_host(text: str) -> BadInput:
    return BadInput(f"the host of {text!r} is not a valid name")


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
