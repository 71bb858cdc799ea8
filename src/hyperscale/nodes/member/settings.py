"""Settings of a node: what they are, and where their values may come from.

`bind` is `--bind` on the command line, `HYPERSCALE_NODE_BIND` in the environment and `bind` in the
`[node]` table of `hyperscale.toml`; strongest first. The numbers of the protocols stand in the
tables `[node.membership]` and `[node.election]`, or after `--set`, as `membership.leave_s=2`.
"""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from hyperscale.cluster.discovery import DiscoverySettings, DnsName
from hyperscale.cluster.discovery.settings import parse_address
from hyperscale.cluster.election import ElectionSettings
from hyperscale.cluster.identity import NODE_ID_CHARS_MAX, Endpoint
from hyperscale.cluster.membership import MembershipConfig
from hyperscale.errors import BadInput
from hyperscale.runtime.host import Address
from hyperscale.wire.certificates import Credentials
from hyperscale.wire.endpoint import Plaintext
from hyperscale.wire.identity import ROLES
from hyperscale.wire.sealed import check_secret

ENV_PREFIX = "HYPERSCALE_NODE_"
TABLE = "node"
PORT_DEFAULT = 7_000
SRV = "srv:"
DC_CHARS_MAX = 32
# A client asks and goes; it has no address at which others could probe it.
MEMBER_ROLES = tuple(role for role in ROLES if role != "client")

_PROTOCOLS: dict[str, type[Any]] = {"membership": MembershipConfig, "election": ElectionSettings}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Checked and ready for use; `read_settings` makes it out of texts."""

    id: str
    bind: Address
    advertise: str = ""  # host that others are told; the bound one when empty
    seeds: tuple[Endpoint, ...] = ()
    names: tuple[DnsName, ...] = ()
    nameservers: tuple[Address, ...] = ()
    cluster: str = "default"
    env: str = "dev"
    dc: str = "local"
    role: str = "probe"
    credentials: Credentials | None = None
    plaintext: Plaintext = "loopback"  # where, without credentials; "anywhere" in the simulator
    secret: str | None = None
    previous_secret: str | None = None  # still understood while a new one is rolled out
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


NAMES = (
    "id", "bind", "advertise", "seed", "nameserver", "cluster", "env", "dc", "role", "certs",
    "secret_file", "previous_secret_file", "voters", "metrics", "data", "plaintext", "log",
    "log_level",
)  # fmt: skip


def read_settings(
    flags: Mapping[str, object], environ: Mapping[str, str], table: Mapping[str, object]
) -> NodeSettings:
    """Raises BadInput. `flags` may hold `set`, a list of `protocol.name=value`."""
    values = _file_values(table) | _environment_values(environ)
    values |= {name: flags[name] for name in NAMES if flags.get(name) not in (None, False, "", [])}
    protocols = {
        name: _protocol_table(name, table) | _protocol_environment(name, environ)
        for name in _PROTOCOLS
    }
    for text in _texts(flags.get("set") or []):
        name, key, value = _assignment(text)
        protocols[name][key] = value
    return _checked(values, protocols)


def _checked(values: Mapping[str, object], protocols: dict[str, dict[str, Any]]) -> NodeSettings:
    node_id = _name("id", _text(values, "id") or _missing("id", "a name that no other node has"))
    bind = _address("bind", _text(values, "bind") or f"127.0.0.1:{PORT_DEFAULT}")
    advertise = _text(values, "advertise")
    if not advertise and _is_anywhere(bind.host):
        raise BadInput(
            f"--bind {bind} says where to listen, but not how others reach this node",
            "name a host others can use with --advertise",
        )
    seeds, names = _seeds(_texts(values.get("seed") or []))
    plaintext = _switch("plaintext", values.get("plaintext") or False)
    if plaintext and not _is_loopback(bind.host):
        raise BadInput(
            f"--plaintext is for loopback only, not for {bind}", "use --certs and --secret-file"
        )
    metrics = _text(values, "metrics")
    voters = tuple(_name("voters", voter) for voter in _texts(values.get("voters") or []))
    if voters and node_id not in voters:
        raise BadInput(
            f"{node_id} is not among the voters {', '.join(voters)}",
            "a node that does not vote is started without --voters",
        )
    return NodeSettings(
        id=node_id,
        bind=bind,
        advertise=advertise,
        seeds=seeds,
        names=names,
        nameservers=tuple(
            _address("nameserver", text, 53) for text in _texts(values.get("nameserver") or [])
        ),
        cluster=_name("cluster", _text(values, "cluster") or "default"),
        env=_name("env", _text(values, "env") or "dev"),
        dc=_name("dc", _text(values, "dc") or "local", DC_CHARS_MAX),
        role=_role(_text(values, "role") or "probe"),
        credentials=_credentials(_text(values, "certs"), node_id, plaintext),
        secret=_secret("secret-file", _text(values, "secret_file"), plaintext),
        previous_secret=_secret(
            "previous-secret-file", _text(values, "previous_secret_file"), True
        ),
        voters=voters,
        metrics=_loopback(_address("metrics", metrics)) if metrics else None,
        data=Path(_text(values, "data") or f"hyperscale-data/{node_id}"),
        log=_text(values, "log") or "stderr",
        log_level=_text(values, "log_level") or "info",
        membership=_protocol("membership", MembershipConfig, protocols),
        election=_protocol("election", ElectionSettings, protocols),
    )


# -- sources -------------------------------------------------------------------------------------


def read_table(path: Path) -> dict[str, object]:
    """The `[node]` table of a TOML file; other tables belong to other commands."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"the config file {str(path)!r} cannot be read: {error}") from None
    table = document.get(TABLE, {})
    if not isinstance(table, dict):
        raise BadInput(f"{path}: {TABLE!r} is a table: write [{TABLE}]")
    return table


def _file_values(table: Mapping[str, object]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in _PROTOCOLS:
            continue
        if name not in NAMES:
            raise _unknown(f"[{TABLE}]", key, (*NAMES, *_PROTOCOLS))
        values[name] = value
    return values


def _environment_values(environ: Mapping[str, str]) -> dict[str, object]:
    labels = {name: ENV_PREFIX + name.upper() for name in NAMES}
    return {name: environ[label] for name, label in labels.items() if environ.get(label)}


def _protocol_table(name: str, table: Mapping[str, object]) -> dict[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise BadInput(f"[{TABLE}] {name} is a table: write [{TABLE}.{name}]")
    known = _tunable(_PROTOCOLS[name])
    values = {key.replace("-", "_"): value for key, value in found.items()}
    for key in values:
        if key not in known:
            raise _unknown(f"[{TABLE}.{name}]", key, known)
    return values


def _protocol_environment(name: str, environ: Mapping[str, str]) -> dict[str, Any]:
    prefix = f"{ENV_PREFIX}{name.upper()}_"
    known = _tunable(_PROTOCOLS[name])
    return {
        key: environ[prefix + key.upper()] for key in known if environ.get(prefix + key.upper())
    }


def _assignment(text: str) -> tuple[str, str, str]:
    path, equals, value = text.partition("=")
    name, dot, key = path.strip().partition(".")
    key = key.replace("-", "_")
    if not (equals and dot and name in _PROTOCOLS):
        known = " or ".join(f"{protocol}.NAME=VALUE" for protocol in _PROTOCOLS)
        raise BadInput(f"--set takes {known}, not {text!r}")
    if key not in _tunable(_PROTOCOLS[name]):
        raise _unknown(name, key, _tunable(_PROTOCOLS[name]))
    return name, key, value.strip()


def _unknown(where: str, key: str, known: Iterable[str]) -> BadInput:
    near = get_close_matches(key.replace("-", "_"), list(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(sorted(known))}"
    return BadInput(f"{where} has no setting {key!r}", hint)


# -- values --------------------------------------------------------------------------------------


def _tunable(kind: type[Any]) -> dict[str, Field[Any]]:
    """The plain numbers and switches of a protocol's settings; `cluster` is not one of them."""
    return {
        one.name: one
        for one in fields(kind)
        if one.default is not MISSING and isinstance(one.default, bool | int | float)
    }


def _protocol(name: str, kind: type[T], given: Mapping[str, Mapping[str, Any]]) -> T:
    known = _tunable(kind)
    values = {
        key: _number(f"{name}.{key}", known[key], value) for key, value in given[name].items()
    }
    try:
        return kind(**values)
    except (ValueError, AssertionError) as error:
        raise BadInput(
            f"the {name} settings contradict each other"
            + (f": {error}" if str(error) else " (" + ", ".join(sorted(values)) + ")"),
        ) from None


def _number(label: str, known: Field[Any], value: object) -> bool | int | float:
    if isinstance(known.default, bool):
        return _switch(label, value)
    whole = isinstance(known.default, int)
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        number = int(value) if whole else float(value)
    except ValueError:
        wanted = "a whole number" if whole else "a number"
        raise BadInput(f"{label} takes {wanted}, not {value!r}") from None
    if not number >= 0:
        raise BadInput(f"{label} takes nothing below zero, not {value!r}")
    return number


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name, "")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(f"{name} takes text, not {value!r}")
    return str(value).strip()


def _texts(value: object) -> list[str]:
    """A list, or one text cut at commas; each entry of a list may hold commas too."""
    given = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(entry, str) for entry in given):
        raise BadInput(f"a list of texts is wanted, not {value!r}")
    return [part.strip() for entry in given for part in str(entry).split(",") if part.strip()]


def _switch(label: str, value: object) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False}
    found = words.get(str(value).lower())
    if found is None:
        raise BadInput(f"{label} takes true or false, not {value!r}")
    return found


def _missing(name: str, what: str) -> str:
    raise BadInput(f"--{name} is missing: {what}")


def _name(label: str, value: str, bytes_max: int = NODE_ID_CHARS_MAX) -> str:
    if not value or len(value.encode()) > bytes_max or not value.isprintable():
        raise BadInput(f"--{label} takes 1 to {bytes_max} characters, not {value!r}")
    return value


def _role(value: str) -> str:
    if value not in MEMBER_ROLES:
        raise BadInput(f"--role takes one of {', '.join(MEMBER_ROLES)}, not {value!r}")
    return value


def _address(label: str, text: str, port_default: int = PORT_DEFAULT) -> Address:
    host, colon, port = text.rpartition(":")
    if colon and port == "0" and host:
        return Address(host.strip("[]"), 0)  # any free port
    try:
        return Address(*parse_address(text, port_default))
    except ValueError as error:
        raise BadInput(f"--{label}: {error}") from None


def _seeds(texts: list[str]) -> tuple[tuple[Endpoint, ...], tuple[DnsName, ...]]:
    seeds: list[Endpoint] = []
    names: list[DnsName] = []
    for text in texts:
        if text.startswith(SRV):
            names.append(DnsName(text.removeprefix(SRV), service=True))
            continue
        host, port = _address("seed", text)
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


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_literal(host) and ipaddress.ip_address(host).is_loopback)


def _is_anywhere(host: str) -> bool:
    return _is_literal(host) and ipaddress.ip_address(host).is_unspecified


def _loopback(address: Address) -> Address:
    if not _is_loopback(address.host):
        raise BadInput(
            f"--metrics {address} is not on loopback, and the page is not protected",
            "put a proxy with access control in front of it",
        )
    return address


def _credentials(folder: str, node_id: str, plaintext: bool) -> Credentials | None:
    if plaintext:
        if folder:
            raise BadInput("--certs and --plaintext exclude each other")
        return None
    if not folder:
        raise BadInput(
            "a node needs --certs, a directory made by hyperscale certs",
            "for a try on one machine there is --plaintext",
        )
    made = Credentials(
        Path(folder, "ca.pem"), Path(folder, f"{node_id}.pem"), Path(folder, f"{node_id}-key.pem")
    )
    for path in (made.ca, made.certificate, made.key):
        if not path.is_file():
            raise BadInput(
                f"{path} does not exist",
                f"make it: hyperscale certs {folder} --node ROLE:{node_id}",
            )
    return made


def _secret(label: str, path: str, optional: bool) -> str | None:
    if not path:
        if optional:
            return None
        raise BadInput(
            f"a node needs --{label}, a file with the secret that the cluster shares",
            "make one: head -c 32 /dev/urandom | base64 > secret",
        )
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
        check_secret(secret)
    except (OSError, ValueError) as error:
        raise BadInput(f"--{label} {path} cannot be used: {error}") from None
    return secret
