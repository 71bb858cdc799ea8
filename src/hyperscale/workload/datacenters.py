"""In which datacenters a test runs: as the author, a flag or the config file says it.

A name alone runs the load as it is written there; `eu=60` and `us=40` split one load in that
proportion. What a datacenter is, only gates know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hyperscale.errors import BadInput

SHARE_MAX = 1_000
EXAMPLE = 'datacenters = {"eu": 60, "us": 40} splits one load; ["eu", "us"] runs all of it in each'


def read_datacenters(
    value: object, what: str = "datacenters", example: str = EXAMPLE
) -> dict[str, int]:
    """Each with its share, or 0 for all of the load. Raises BadInput."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, str):
        pairs = [_pair(value)]
    elif isinstance(value, Iterable):
        pairs = [_pair(one) for one in value]
    else:
        raise BadInput(f"{what} is {value!r}, not a list of names or names with shares", example)
    found: dict[str, int] = {}
    for name, share in pairs:
        if not isinstance(name, str) or not name.strip():
            raise BadInput(f"{what}: {name!r} is no name of a datacenter", example)
        name = name.strip()
        if name in found:
            raise BadInput(f"{what} names {name} twice", example)
        found[name] = 0 if share is None else _share(share, f"{what} {name}", example)
    if len({share > 0 for share in found.values()}) > 1:
        raise BadInput(
            f"{what}: either each datacenter has a share of the load, or none has", example
        )
    return found


def _pair(text: object) -> tuple[object, object]:
    if not isinstance(text, str):
        return text, None
    name, given, share = text.partition("=")
    return name, share.strip() if given else None


def _share(share: object, what: str, example: str) -> int:
    if isinstance(share, str) and share.isascii() and share.isdecimal():
        share = int(share)
    if not isinstance(share, int) or isinstance(share, bool) or not 0 < share <= SHARE_MAX:
        raise BadInput(
            f"{what}: {share!r} is no share, which is a whole number from 1 to {SHARE_MAX:,}",
            example,
        )
    return share
