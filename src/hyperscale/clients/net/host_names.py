"""Names of hosts as DNS and servers know them."""

from __future__ import annotations

import re

from hyperscale.errors import BadInput

_HOST = re.compile(r"[A-Za-z0-9._~%!$&'()*+,;=-]+|\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._~-]+)?\]")
_LABEL_CHARACTERS_MAX = 63


def ascii_host(host: str, text: str) -> str:
    """The name in ASCII; of an IPv6 address with its zone. `text` is where the author wrote it."""
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


def _bad_host(text: str) -> BadInput:
    return BadInput(f"the host of {text!r} is not a valid name")
