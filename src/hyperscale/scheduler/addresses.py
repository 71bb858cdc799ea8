"""Addresses as others may read them, without whatever one logs in with; and whether one stays on
this machine, which decides over tokens and TLS on both ends.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from hyperscale.workload.secrets import MASK, mask_url

_USER: Final = re.compile(r"(?<=://)[^/?#\s\"'\\]*@")
_AFTER: Final = re.compile(r"[?#].*", re.DOTALL)


def without_user(text: str) -> str:
    """A text in which URLs may stand, whose user and password are left out."""
    return _USER.sub(f"{MASK}@", text) if "://" in text else text


def plain_url(url: str) -> str:
    return without_user(mask_url(url))


def plain_address(address: str) -> str:
    """Of a store or an election: scheme, place and path. A password that was not escaped may reach
    beyond the place, so all before the last @ is left out."""
    scheme, colon, rest = address.partition(":")
    user, at, place = rest.removeprefix("//").rpartition("@")
    slashes = "//" if rest.startswith("//") else ""
    return f"{scheme}{colon}{slashes}{MASK + at if user else at}{_AFTER.sub('', place)}"


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
