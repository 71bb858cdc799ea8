"""`hyperscale certs list|renew|revoke`: what becomes of certificates after they were made.

The directory is the one that `hyperscale certs` has made. A certificate is withdrawn by its serial
number, in a file that every node is given as `--refused`; its node can be given a new one.
"""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hyperscale.cli import streams
from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.wire.certificates import CertificateIdentity, Validity

REFUSED = "refused"
HEAD = ("NODE", "ROLE", "DC", "ENV", "GROUPS", "SERIAL", "EXPIRES", "")
ACTIONS = ("list", "renew", "revoke")


class Held(NamedTuple):
    """A certificate of the directory."""

    name: str
    der: bytes
    identity: CertificateIdentity
    validity: Validity


def act(action: str, folder: Path, names: list[str], days: int) -> int:
    if not (folder / "ca.pem").is_file():
        raise BadInput(f"{folder} has no ca.pem", "name the directory made by hyperscale certs")
    if action == "list":
        return _list(folder)
    if not names:
        raise BadInput(f"certs {action} needs the names of nodes", "hyperscale certs list DIR")
    return _renew(folder, names, days) if action == "renew" else _revoke(folder, names)


def _list(folder: Path) -> int:
    from hyperscale.cli.tables import table
    from hyperscale.wire.withdrawn import Withdrawn, read_withdrawn, serial_text

    listed = folder / REFUSED
    withdrawn = read_withdrawn(listed) if listed.exists() else Withdrawn()
    now = datetime.now(UTC).timestamp()
    rows = [
        (
            one.name,
            one.identity.role,
            one.identity.datacenter,
            one.identity.environment_id,
            " ".join(one.identity.groups),
            serial_text(one.validity.serial),
            datetime.fromtimestamp(one.validity.ends_at, UTC).strftime("%Y-%m-%d"),
            _state(one, withdrawn.covers(one.name, one.validity.serial), now),
        )
        for one in _held(folder)
    ]
    streams.say("\n".join(table(HEAD, rows)) if rows else "no certificates of nodes")
    return 0


def _state(one: Held, withdrawn: bool, now: float) -> str:
    if withdrawn:
        return "refused"
    left_days = (one.validity.ends_at - now) / 86_400
    return "expired" if left_days < 0 else f"{left_days:.0f} days left"


def _revoke(folder: Path, names: list[str]) -> int:
    """By serial number where the certificate is here: a new one of the same node is then good."""
    from hyperscale.wire.identity import NAME_RULE, is_name
    from hyperscale.wire.withdrawn import serial_text

    held = {one.name: one for one in _held(folder)}
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    lines = []
    for name in names:
        if not is_name(name):
            raise BadInput(f"a node id has {NAME_RULE}, not {name!r}")
        known = held.get(name)
        word = name if known is None else serial_text(known.validity.serial)
        lines.append(f"{word}  # {name}, {today}\n")
    path = folder / REFUSED
    try:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error
    streams.say(
        f"{path} names them. Copy it to every node (--refused {REFUSED}) and send it SIGHUP: kill "
        "-HUP, systemctl reload.\nWhoever had the key has the cluster's secret too: change it."
    )
    return 0


def _renew(folder: Path, names: list[str], days: int) -> int:
    from hyperscale.wire.certificates import Pem, hosts_of, make_node

    held = {one.name: one for one in _held(folder)}
    for name in names:
        if name not in held:
            raise BadInput(f"{folder} has no certificate of {name!r}", "hyperscale certs list DIR")
    try:
        authority = Pem((folder / "ca.pem").read_bytes(), (folder / "ca-key.pem").read_bytes())
    except OSError as error:
        raise BadInput(f"the authority in {folder} cannot be read: {error.strerror}") from error
    for name in names:
        old = held[name]
        made = make_node(authority, old.identity, name, hosts_of(old.der), days)
        _replace(folder / f"{name}-key.pem", made.key)
        _replace(folder / f"{name}.pem", made.certificate)
        streams.say(f"{name}.pem, {name}-key.pem  new, good for {days} days")
    streams.say("Copy them to their nodes and send those SIGHUP: kill -HUP, systemctl reload.")
    return 0


def _held(folder: Path) -> list[Held]:
    from hyperscale.wire.certificates import identity_of, validity_of
    from hyperscale.wire.errors import Refused

    found = []
    for path in sorted(folder.glob("*.pem")):
        if path.name in ("ca.pem", "ca-key.pem") or path.stem.endswith("-key"):
            continue
        try:
            der = ssl.PEM_cert_to_DER_cert(path.read_text(encoding="ascii"))
            found.append(Held(path.stem, der, identity_of(der), validity_of(der)))
        except (OSError, ValueError, Refused) as error:
            raise BadInput(f"{path} is no certificate of a node: {error}") from error
    return found


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(path.name + ".new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        beside.replace(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error
