"""Which cluster a client means, and who it says it is.

`managers` is `--manager` on the command line, `HYPERSCALE_CLUSTER_MANAGER` in the environment and
`manager` in the `[cluster]` table of `hyperscale.toml`; strongest first, likewise the others. A
`hyperscale dev` cluster of this machine needs no more than its host, or nothing at all.
"""

from __future__ import annotations

import ssl
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from hyperscale.cluster.discovery.settings import parse_address
from hyperscale.errors import BadInput
from hyperscale.nodes.client import dev_file
from hyperscale.runtime.host import Address, is_loopback
from hyperscale.wire.certificates import CertificateIdentity, Credentials, identity_of
from hyperscale.wire.errors import Refused
from hyperscale.wire.identity import Identity

ENV_PREFIX = "HYPERSCALE_CLUSTER_"
TABLE = "cluster"
PORT_DEFAULT = 7_000
NAME_DEFAULT = "client"
NAMES = ("manager", "certs", "name", "id", "environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Checked and ready for use; `read_cluster` makes it out of texts."""

    managers: tuple[Address, ...]
    identity: Identity
    credentials: Credentials | None = None


def read_cluster(
    flags: Mapping[str, object], environ: Mapping[str, str], table: Mapping[str, object]
) -> ClusterSettings:
    """Raises BadInput. Values are texts; `manager` may be a list of them."""
    values = _file_values(table)
    labels = {name: ENV_PREFIX + name.upper() for name in NAMES}
    values |= {name: environ[label] for name, label in labels.items() if environ.get(label)}
    values |= {name: flags[name] for name in NAMES if flags.get(name) not in (None, "", [], ())}
    named = [_place(text) for text in _texts(values.get("manager", []))]
    certs, name = _text(values, "certs"), _text(values, "name")
    dev = None if certs else _dev_cluster(named, environ)
    if dev is not None:
        managers = tuple(dict.fromkeys([*_chosen(named, dev), *dev.addresses]))
        certs, name = dev.certs, name or dev.name
    elif named:
        managers = tuple(Address(host, port or PORT_DEFAULT) for host, port in named)
    else:
        raise BadInput(
            "no manager is named, and no hyperscale dev cluster runs on this machine",
            "--manager HOST[:PORT], or write it in the [cluster] table of hyperscale.toml; "
            "hyperscale dev starts a cluster to practise",
        )
    credentials, identity = identity_from(
        certs,
        name or NAME_DEFAULT,
        _text(values, "id") or "default",
        _text(values, "environment") or "dev",
    )
    for address in managers:
        if credentials is None and not is_loopback(address.host):
            raise BadInput(
                f"{address} is another machine, where only TLS is spoken",
                f"--certs DIR; make it: hyperscale certs DIR --node client:{NAME_DEFAULT}",
            )
    return ClusterSettings(managers=managers, identity=identity, credentials=credentials)


def read_table(path: Path) -> dict[str, object]:
    """The `[cluster]` table of a TOML file; other tables belong to other commands."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"the config file {str(path)!r} cannot be read: {error}") from None
    table = document.get(TABLE, {})
    if not isinstance(table, dict):
        raise BadInput(f"{path}: {TABLE!r} is a table: write [{TABLE}]")
    return table


def identity_from(
    certs: str, name: str, cluster: str, environment: str
) -> tuple[Credentials | None, Identity]:
    """What the certificate says we are, or without one, on loopback, what we say ourselves."""
    credentials = None
    proven = CertificateIdentity("client", cluster, environment, "local")
    if certs:
        credentials = Credentials(
            Path(certs, "ca.pem"), Path(certs, f"{name}.pem"), Path(certs, f"{name}-key.pem")
        )
        for path in (credentials.ca, credentials.certificate, credentials.key):
            if not path.is_file():
                raise BadInput(
                    f"{path} does not exist", f"make it: hyperscale certs {certs} -n client:{name}"
                )
        try:
            pem = credentials.certificate.read_text(encoding="utf-8")
            proven = identity_of(ssl.PEM_cert_to_DER_cert(pem))
            credentials.client_context()
        except (OSError, ValueError, Refused) as error:
            raise BadInput(
                f"the certificate {credentials.certificate} is no use: {error}"
            ) from None
        if proven.role != "client":
            raise BadInput(
                f"{credentials.certificate} is the certificate of a {proven.role}, not of a client",
                f"make one: hyperscale certs {certs} -n client:NAME, then --name NAME",
            )
    identity = Identity(
        node_id=proven.node_id or name,
        incarnation=0,
        role="client",
        cluster_id=proven.cluster_id,
        environment_id=proven.environment_id,
        datacenter=proven.datacenter,
    )
    return credentials, identity


def addresses_of(given: Sequence[str | tuple[str, int]]) -> tuple[str, ...]:
    """Addresses as programs write them, as the texts that `read_cluster` takes."""
    return tuple(
        address if isinstance(address, str) else str(Address(address[0], int(address[1])))
        for address in given
    )


def _dev_cluster(
    named: list[tuple[str, int | None]], environ: Mapping[str, str]
) -> dev_file.DevCluster | None:
    """The dev cluster that is meant; two of them are told apart by their port."""
    if any(not is_loopback(host) for host, _ in named):
        return None
    ports = {port for _, port in named if port is not None}
    found = [
        cluster
        for cluster in dev_file.living(environ)
        if ports <= {address.port for address in cluster.addresses}
    ]
    if len(found) > 1:
        which = ", ".join(str(cluster.port) for cluster in found)
        raise BadInput(
            f"{len(found)} hyperscale dev clusters run on this machine, at ports {which}",
            f"name one: --manager 127.0.0.1:{found[0].port}",
        )
    return found[0] if found else None


def _chosen(named: list[tuple[str, int | None]], dev: dev_file.DevCluster) -> list[Address]:
    """The managers the user named by port come first."""
    ports = [port for _, port in named if port is not None]
    return [address for port in ports for address in dev.addresses if address.port == port]


def _place(text: str) -> tuple[str, int | None]:
    """Host and port; None when the text says no port, so that no default shows through."""
    try:
        (host, port), (_, other) = parse_address(text, 1), parse_address(text, 2)
    except ValueError as error:
        raise BadInput(f"--manager: {error}") from None
    return host, port if port == other else None


def _file_values(table: Mapping[str, object]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in NAMES:
            near = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(NAMES)}"
            raise BadInput(f"[{TABLE}] has no setting {key!r}", hint)
        values[name] = value
    return values


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name, "")
    if not isinstance(value, str):
        raise BadInput(f"{name} takes text, not {value!r}")
    return value.strip()


def _texts(value: object) -> list[str]:
    """A list, or one text cut at commas; each entry of a list may hold commas too."""
    given = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(entry, str) for entry in given):
        raise BadInput(f"--manager takes HOST[:PORT], not {value!r}")
    return [part.strip() for entry in given for part in str(entry).split(",") if part.strip()]
