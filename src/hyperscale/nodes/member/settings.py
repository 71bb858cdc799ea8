"""Settings of a node: what they are, and what is wrong with those that cannot be used.

`bind` is `--bind` on the command line, `HYPERSCALE_NODE_BIND` in the environment and `bind` in the
`[node]` table of `hyperscale.toml`; strongest first. The numbers of the protocols stand in the
tables `[node.membership]` and `[node.election]`, or after `--set`, as `membership.leave_s=2`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from hyperscale.cluster.discovery import DiscoverySettings, DnsName
from hyperscale.cluster.discovery.settings import parse_address
from hyperscale.cluster.election import ElectionSettings
from hyperscale.cluster.identity import NODE_ID_CHARS_MAX, Endpoint
from hyperscale.cluster.membership import MembershipConfig
from hyperscale.config.sections import Reading, Section, Setting, Sources, numbers_of
from hyperscale.errors import BadInput
from hyperscale.runtime.host import Address, is_loopback
from hyperscale.runtime.logs import Level
from hyperscale.runtime.private_files import read_private
from hyperscale.wire.certificates import Credentials
from hyperscale.wire.endpoint import Plaintext
from hyperscale.wire.identity import NAME_RULE, ROLES, is_name
from hyperscale.wire.sealed import check_secret
from hyperscale.wire.withdrawn import read_withdrawn

PORT_DEFAULT = 7_000
SRV = "srv:"
DC_CHARS_MAX = 32
# A client asks and goes; it has no address at which others could probe it.
MEMBER_ROLES = tuple(role for role in ROLES if role != "client")
LOG_LEVELS: tuple[str, ...] = get_args(Level)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Checked and ready for use; `read_settings` makes it out of texts."""

    id: str
    bind: Address
    advertise: Address | None = None  # what others are told; port 0: the bound one
    seeds: tuple[Endpoint, ...] = ()
    names: tuple[DnsName, ...] = ()
    nameservers: tuple[Address, ...] = ()
    cluster: str = "default"  # of programs that make it themselves: `node_settings` needs it said
    env: str = "dev"
    dc: str = "local"
    role: str = "probe"
    credentials: Credentials | None = None
    refused: Path | None = None  # a list of certificates that were withdrawn
    plaintext: Plaintext = "loopback"  # where, without credentials; "anywhere" in the simulator
    secret: str | None = None
    previous_secret: str | None = None  # understood as well, while one takes the other's place
    manager_secret: str | None = None  # seals elections; workers do not have it
    previous_manager_secret: str | None = None
    secret_files: tuple[Path, ...] = ()  # where they were read
    voters: tuple[str, ...] = ()
    metrics: Address | None = None
    data: Path
    log: str = "stderr"
    log_level: str = "info"
    membership: MembershipConfig = field(default_factory=MembershipConfig)
    election: ElectionSettings = field(default_factory=ElectionSettings)

    @property
    def group(self) -> str:
        """The electorate: voters of another cluster, environment or role are strangers to it."""
        return f"{self.cluster}/{self.env}/{self.role}"

    def discovery(self) -> DiscoverySettings:
        taken_in_by = "manager" if self.role == "worker" else self.role
        try:
            return DiscoverySettings(
                seeds=self.seeds,
                names=self.names,
                peer_roles=(taken_in_by,),
                forms_cluster=self.role != "worker",
            )
        except ValueError as error:
            raise BadInput(f"{self.id} cannot look for its cluster: {error}") from None


_TEXTS: dict[str, object] = {
    "id": "",
    "bind": f"127.0.0.1:{PORT_DEFAULT}",
    "advertise": "",
    "seed": (),
    "nameserver": (),
    "cluster": "",
    "env": "",
    "dc": "local",
    "role": "probe",
    "certs": "",
    "refused": "",
    "verify_hostname": True,
    "secret_file": "",
    "previous_secret_file": "",
    "manager_secret_file": "",
    "previous_manager_secret_file": "",
    "voters": (),
    "metrics": "",
    "data": "",
    "plaintext": False,
    "log": "stderr",
    "log_level": "info",
}
# No worker has them.
MANAGERS_ALONE = ("manager_secret_file", "previous_manager_secret_file")
NODE = Section("node", _TEXTS, flags=tuple(_TEXTS))
SECTIONS = (
    NODE,
    Section("node.membership", numbers_of(MembershipConfig), may_be_zero=("leave_s",)),
    Section(
        "node.election",
        numbers_of(ElectionSettings),
        may_be_zero=(
            "lease_slack_s",
            "first_delay_max_s",
            "lhm_step_s",
            "reluctance_s",
            "reluctance_step_s",
            "flap_cooldown_s",
        ),
    ),
)


def read_settings(sources: Sources) -> NodeSettings:
    """Of a bare member. Raises BadInput."""
    return node_settings(Reading(sources, SECTIONS))


def node_settings(reading: Reading, role: str = "") -> NodeSettings:
    """Raises BadInput. Without a `role` the settings say it."""
    given = {name: reading.of("node", name) for name in _TEXTS}
    node_id = _required(given["id"], "a name of its own", "--id m1")
    bind = _address(given["bind"])
    if not given["advertise"].value and _is_anywhere(bind.host):
        raise BadInput(
            f"{given['bind'].label} {bind} says where to listen, not how others reach this node",
            "name the address others can use with --advertise",
        )
    seeds, names = _seeds(given["seed"])
    plaintext = given["plaintext"].value
    if plaintext and not is_loopback(bind.host):
        raise BadInput(
            f"{given['plaintext'].label} is for loopback only, not for {bind}",
            "use --certs and --secret-file",
        )
    log_level = given["log_level"]
    if log_level.value not in LOG_LEVELS:
        known = ", ".join(LOG_LEVELS)
        raise BadInput(f"{log_level.label} takes one of {known}, not {log_level.value!r}")
    return NodeSettings(
        id=node_id,
        bind=bind,
        advertise=_advertised(given["advertise"]),
        seeds=seeds,
        names=names,
        nameservers=tuple(_addresses(given["nameserver"], 53)),
        cluster=_required(given["cluster"], "the cluster it belongs to", "--cluster shop"),
        env=_required(given["env"], "the environment it belongs to", "--env prod"),
        dc=_name(given["dc"], DC_CHARS_MAX),
        role=role or _role(given["role"]),
        credentials=_credentials(
            given["certs"], node_id, plaintext, given["verify_hostname"].value
        ),
        refused=_refused(given["refused"]),
        secret=_secret(given["secret_file"], plaintext),
        previous_secret=_secret(given["previous_secret_file"], optional=True),
        manager_secret=_manager_secret("manager_secret_file", given, role),
        previous_manager_secret=_manager_secret("previous_manager_secret_file", given, role),
        secret_files=tuple(
            Path(given[name].value)
            for name in given
            if name.endswith("secret_file") and given[name].value
        ),
        voters=_voters(given["voters"], node_id, role),
        metrics=_address(given["metrics"]) if given["metrics"].value else None,
        data=Path(given["data"].value or f"hyperscale-data/{node_id}"),
        log=given["log"].value,
        log_level=log_level.value,
        membership=reading.build("membership", MembershipConfig),
        election=reading.build("election", ElectionSettings),
    )


# -- values --------------------------------------------------------------------------------------


def _required(given: Setting, what: str, example: str) -> str:
    """No default: nodes of two clusters that both left it out would take each other in."""
    if given.value:
        return _name(given)
    flag = example.split()[0].removeprefix("--")
    raise BadInput(
        f"--{flag} is missing: a node needs {what}",
        f"{example}, HYPERSCALE_NODE_{flag.upper()}, or {flag} in the [node] table of "
        "hyperscale.toml; hyperscale dev needs none of it",
    )


def _name(given: Setting, chars_max: int = NODE_ID_CHARS_MAX) -> str:
    value: str = given.value
    if not is_name(value) or len(value) > chars_max:
        raise BadInput(
            f"{given.label} takes 1 to {chars_max} characters: {NAME_RULE}, not {value!r}"
        )
    return value


def _role(given: Setting) -> str:
    if given.value not in MEMBER_ROLES:
        raise BadInput(f"{given.label} takes one of {', '.join(MEMBER_ROLES)}, not {given.value!r}")
    return str(given.value)


def _voters(given: Setting, node_id: str, role: str) -> tuple[str, ...]:
    if role == "worker":
        return ()
    voters = tuple(_name(given._replace(value=voter)) for voter in given.value)
    twice = sorted({voter for voter in voters if voters.count(voter) > 1})
    if twice:
        raise BadInput(
            f"{given.label} names {', '.join(twice)} more than once",
            "a majority is counted over the list, so each voter stands in it once",
        )
    if voters and node_id not in voters:
        raise BadInput(
            f"{node_id} is not among the voters {', '.join(voters)} ({given.label})",
            "a node that does not vote is started without --voters",
        )
    return voters


def _address(given: Setting, port_default: int = PORT_DEFAULT) -> Address:
    text: str = given.value
    host, colon, port = text.rpartition(":")
    if colon and port == "0" and host:
        return Address(host.strip("[]"), 0)  # any free port
    try:
        return Address(*parse_address(text, port_default))
    except ValueError as error:
        raise BadInput(f"{given.label}: {error}") from None


def _addresses(given: Setting, port_default: int = PORT_DEFAULT) -> list[Address]:
    return [_address(given._replace(value=text), port_default) for text in given.value]


def _advertised(given: Setting) -> Address | None:
    if not given.value:
        return None
    told = Address(given.value, 0) if _is_literal(given.value) else _address(given)
    if not _is_literal(told.host):
        raise BadInput(
            f"{given.label} takes an IP address, not {given.value!r}",
            "datagrams go without asking a name server; certificates name the address as well: "
            "hyperscale certs --host",
        )
    return told


def _seeds(given: Setting) -> tuple[tuple[Endpoint, ...], tuple[DnsName, ...]]:
    seeds: list[Endpoint] = []
    names: list[DnsName] = []
    for text in given.value:
        if text.startswith(SRV):
            names.append(DnsName(text.removeprefix(SRV), service=True))
            continue
        host, port = _address(given._replace(value=text))
        if _is_literal(host):
            seeds.append((host, port))
        else:
            names.append(DnsName(host, port))
    return tuple(seeds), tuple(names)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_anywhere(host: str) -> bool:
    return _is_literal(host) and ipaddress.ip_address(host).is_unspecified


def _credentials(
    given: Setting, node_id: str, plaintext: bool, verify_hostname: bool
) -> Credentials | None:
    folder: str = given.value
    if plaintext:
        if folder:
            raise BadInput(f"{given.label} and --plaintext exclude each other")
        return None
    if not folder:
        raise BadInput(
            "a node needs --certs, a directory made by hyperscale certs",
            "for a try on one machine there is --plaintext",
        )
    made = Credentials(
        Path(folder, "ca.pem"),
        Path(folder, f"{node_id}.pem"),
        Path(folder, f"{node_id}-key.pem"),
        verify_hostname,
    )
    for path in (made.ca, made.certificate, made.key):
        if not path.is_file():
            raise BadInput(
                f"{path} does not exist ({given.label})",
                f"make it: hyperscale certs {folder} --node ROLE:{node_id}",
            )
    return made


def _manager_secret(name: str, given: Mapping[str, Setting], role: str) -> str | None:
    """A worker's is not even read: what it cannot know it cannot give away."""
    secret = None if role == "worker" else _secret(given[name], optional=True)
    for shared in (given["secret_file"], given["previous_secret_file"]):
        if secret is not None and secret == _secret(shared, optional=True):
            raise BadInput(
                f"{given[name].label} holds the same secret as {shared.label}, which workers have "
                "as well",
                "make another one: (umask 077; head -c 32 /dev/urandom | base64 > manager-secret)",
            )
    return secret


def _refused(given: Setting) -> Path | None:
    if not given.value:
        return None
    path = Path(given.value)
    read_withdrawn(path)
    return path


def _secret(given: Setting, optional: bool) -> str | None:
    path: str = given.value
    if not path:
        if optional:
            return None
        raise BadInput(
            f"a node needs {given.label}, a file with the secret that the cluster shares",
            "make one: (umask 077; head -c 32 /dev/urandom | base64 > secret)",
        )
    secret = read_private(Path(path), given.label).strip()
    try:
        check_secret(secret)
    except ValueError as error:
        raise BadInput(f"{given.label} {path} cannot be used: {error}") from None
    return secret
