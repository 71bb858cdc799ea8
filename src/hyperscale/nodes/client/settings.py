"""Which cluster a client means, and who it says it is.

`managers` is `--manager` on the command line, `HYPERSCALE_CLUSTER_MANAGER` in the environment and
`manager` in the `[cluster]` table of `hyperscale.toml`; strongest first, likewise the others. A
`hyperscale dev` cluster of this machine needs no more than its host, or nothing at all.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperscale.cluster.discovery.settings import parse_address
from hyperscale.config.sections import Reading, Section, Sources
from hyperscale.errors import BadInput
from hyperscale.nodes.client import dev_file
from hyperscale.runtime.host import Address, is_loopback
from hyperscale.wire.certificates import CertificateIdentity, Credentials, identity_of
from hyperscale.wire.errors import Refused
from hyperscale.wire.identity import Identity

PORT_DEFAULT = 7_000
NAME_DEFAULT = "client"
SECTION = Section(
    "cluster",
    {"manager": (), "certs": "", "name": "", "id": "", "environment": ""},
    flags=("manager", "certs", "name", "id", "environment"),
    spelled={"id": "--cluster-id"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Checked and ready for use; `cluster_settings` makes it out of texts."""

    managers: tuple[Address, ...]
    identity: Identity
    credentials: Credentials | None = None


def read_cluster(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    document: Mapping[str, object],
) -> ClusterSettings:
    """Raises BadInput. `document` has all tables of a config file."""
    reading = Reading(Sources(flags, environ, document), [SECTION])
    return cluster_settings(reading, environ)


def cluster_settings(reading: Reading, environ: Mapping[str, str]) -> ClusterSettings:
    """Raises BadInput. `reading` is of `SECTION`; `environ` says where a dev cluster is told of."""
    manager, certs, name, cluster, environment = (
        reading.of("cluster", one).value for one in SECTION.defaults
    )
    named = [_place(text) for text in manager]
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
        cluster or "default",
        environment or "dev",
    )
    for address in managers:
        if credentials is None and not is_loopback(address.host):
            raise BadInput(
                f"{address} is another machine, where only TLS is spoken",
                f"--certs DIR; make it: hyperscale certs DIR --node client:{NAME_DEFAULT}",
            )
    return ClusterSettings(managers=managers, identity=identity, credentials=credentials)


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
        raise BadInput(str(error)) from None
    return host, port if port == other else None
