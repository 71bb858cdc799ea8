"""`hyperscale certs`: the certificates a cluster's nodes show each other, and its secrets.

A directory holds one authority and any number of nodes. Running it again adds nodes under the same
authority; nothing that exists is replaced, but by `renew`.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from hyperscale.cli import streams
from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.wire.certificates import Pem

CA_CERTIFICATE = "ca.pem"
CA_KEY = "ca-key.pem"
# Made with the authority: pods that only issue a certificate of their own get none.
SECRETS = {
    "secret": "seals datagrams: for every node",
    "manager-secret": "seals elections: for managers alone",
}
SECRET_BYTES = 32
# A common name has 64 characters, and that of an authority says more than the cluster.
NAME_CHARS_MAX = 64
CLUSTER_CHARS_MAX = 45


class Wanted(NamedTuple):
    role: str
    node_id: str


def certs(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIRECTORY",
            help="where to write them (certs); or list, renew, revoke",
        ),
    ] = "certs",
    node: Annotated[
        list[str] | None,
        typer.Option("-n", "--node", metavar="ROLE:NAME", help="a node to certify; repeatable"),
    ] = None,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="ID", help="cluster they belong to; required")
    ] = "",
    environment: Annotated[
        str, typer.Option("--env", metavar="ID", help="environment they belong to; required")
    ] = "",
    datacenter: Annotated[
        str, typer.Option("--dc", metavar="ID", help="datacenter of these nodes (local)")
    ] = "local",
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="name or address they are reached at"),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="NAME", help="of clients: whose jobs are theirs too"),
    ] = None,
    days: Annotated[
        str, typer.Option("--days", metavar="N", help="how long nodes are good for (90)")
    ] = "90",
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="of these three: the directory, then whose"),
    ] = None,
) -> int:
    """Make a certificate authority and node certificates for a cluster, renew or withdraw them."""
    from hyperscale.cli.certs_directory import ACTIONS, act
    from hyperscale.wire.certificates import CertificateIdentity, make_node

    given = names or []
    if directory in ACTIONS:
        return act(directory, Path(given[0] if given else "certs"), given[1:], _days(days))
    if given:
        raise BadInput(f"certs makes nodes by --node ROLE:NAME, not {given[0]!r}")

    wanted = [_wanted(text) for text in node or []]
    for what, value in (("--cluster", cluster), ("--env", environment), ("--dc", datacenter)):
        _check_name(what, value)
    groups = _groups(group or [], wanted)
    for name in host or []:
        if not name or not name.isascii():
            raise BadInput(
                f"--host takes an address or a name, not {name!r}",
                "a name with other letters is written as name servers know it: xn--...",
            )
    hosts = ["localhost", "127.0.0.1", "::1", *(host or [])]
    lifetime_days = _days(days)
    folder = Path(directory)
    for one in wanted:
        _check_free(folder / f"{one.node_id}.pem", folder / f"{one.node_id}-key.pem")
    made: list[tuple[str, str]] = []
    authority = _authority(folder, cluster, made)
    for one in wanted:
        identity = CertificateIdentity(one.role, cluster, environment, datacenter, groups=groups)
        pem = make_node(authority, identity, one.node_id, hosts, lifetime_days)
        _write(folder / f"{one.node_id}.pem", pem.certificate)
        _write(folder / f"{one.node_id}-key.pem", pem.key)
        what = f"{one.role} in {datacenter}, cluster {cluster}, environment {environment}"
        what += f", groups {', '.join(groups)}" if groups else ""
        made.append((f"{one.node_id}.pem, {one.node_id}-key.pem", what))
    streams.say(_shown(folder, made, wanted))
    return 0


def _wanted(text: str) -> Wanted:
    from hyperscale.wire.identity import ROLES

    role, colon, node_id = text.partition(":")
    if not colon or role not in ROLES:
        raise BadInput(
            f"--node takes ROLE:NAME, not {text!r}", f"a role is one of {', '.join(ROLES)}"
        )
    _check_name("--node", node_id)
    if node_id in ("ca", "ca-key"):
        raise BadInput(f"{node_id!r} is the name of the authority's own files")
    return Wanted(role, node_id)


def _groups(names: list[str], wanted: list[Wanted]) -> tuple[str, ...]:
    from hyperscale.wire.certificates import GROUPS_MAX

    for name in names:
        _check_name("--group", name)
    groups = tuple(dict.fromkeys(names))
    if len(groups) > GROUPS_MAX:
        raise BadInput(f"a certificate names at most {GROUPS_MAX} groups")
    if groups and any(one.role != "client" for one in wanted):
        raise BadInput(
            "--group is for clients: it says whose jobs are theirs too",
            "make certificates of other roles with a command of their own",
        )
    return groups


def _check_name(what: str, value: str) -> None:
    from hyperscale.wire.identity import NAME_RULE, is_name

    if not value:
        raise BadInput(
            f"{what} is missing: certificates say which cluster and environment they are for",
            "for example --cluster shop --env prod, as at every node",
        )
    if not is_name(value):
        raise BadInput(f"{what} takes {NAME_RULE}, not {value!r}")
    most = CLUSTER_CHARS_MAX if what == "--cluster" else NAME_CHARS_MAX
    if len(value) > most:
        raise BadInput(f"{what} takes at most {most} characters")


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 3650:
        raise BadInput(f"--days takes a number from 1 to 3650, not {text!r}")
    return int(text)


def _check_free(*paths: Path) -> None:
    for path in paths:
        if path.exists():
            raise BadInput(
                f"{path} exists already", "give the node another name, or remove the old files"
            )


def _authority(folder: Path, cluster: str, made: list[tuple[str, str]]) -> Pem:
    from hyperscale.wire.certificates import Pem, authority_cluster, make_authority

    certificate, key = folder / CA_CERTIFICATE, folder / CA_KEY
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if certificate.exists() and key.exists():
            known = Pem(certificate.read_bytes(), key.read_bytes())
            if authority_cluster(known) != cluster:
                raise BadInput(
                    f"{certificate} belongs to cluster {authority_cluster(known)!r}, "
                    f"not {cluster!r}",
                    "one directory holds one cluster",
                )
            return known
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder} cannot be used: {error}") from error
    _check_free(certificate, key)
    pem = make_authority(cluster)
    _write(certificate, pem.certificate)
    _write(key, pem.key)
    made.append((f"{CA_CERTIFICATE}, {CA_KEY}", f"the authority of cluster {cluster}"))
    for name, what in SECRETS.items():
        if not (folder / name).exists():
            _write(folder / name, base64.b64encode(os.urandom(SECRET_BYTES)) + b"\n")
            made.append((name, what))
    return pem


def _write(path: Path, content: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except FileExistsError as error:
        raise BadInput(f"{path} exists already") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error


def _shown(folder: Path, made: list[tuple[str, str]], wanted: list[Wanted]) -> str:
    if not made:
        return f"{folder} has its authority already; add nodes with --node ROLE:NAME"
    width = max(len(files) for files, _ in made)
    lines = [f"in {folder}/:", *(f"  {files:<{width}}  {what}" for files, what in made), ""]
    if wanted:
        lines += [
            f"Give a node {CA_CERTIFICATE} and its own two files, nobody else's.",
            "Give every node secret, and managers alone manager-secret.",
            f"Keep {CA_KEY} off the nodes: whoever holds it can join the cluster as anyone.",
        ]
    else:
        lines.append("Next: the same command with --node ROLE:NAME for every node.")
    return "\n".join(lines)
