"""Settings of a gate, beside those every node has.

Its own stand in the table `[gate]`, those of the log of jobs in `[ledger]`; see `config.sections`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperscale.cluster.datacenters.settings import ProbeSettings
from hyperscale.cluster.discovery.settings import parse_address
from hyperscale.config.sections import Reading, Section, defaults_of, numbers_of
from hyperscale.errors import BadInput
from hyperscale.ledger.vsr import VsrSettings
from hyperscale.nodes.client.settings import PORT_DEFAULT
from hyperscale.nodes.member import settings as member
from hyperscale.nodes.member.access import OTHERS
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.runtime.etcd import EtcdAccess, endpoints_of
from hyperscale.runtime.host import Address
from hyperscale.wire.identity import NAME_RULE, is_name

Datacenters = dict[str, tuple[Address, ...]]
STORES = ("vsr", "etcd")
ETCD_HINT = "ledger.etcd = HOST:PORT,HOST:PORT, or etcds://HOST:PORT,HOST:PORT with TLS"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings(VsrSettings):
    """Where jobs are written down, with the times of it."""

    store: str = "vsr"
    """"vsr": by the gates themselves; or "etcd"."""
    etcd: str = ""
    etcd_user: str = ""
    etcd_password: str = field(default="", repr=False)
    etcd_ca: str = ""
    etcd_cert: str = ""
    etcd_key: str = ""

    def __post_init__(self) -> None:
        if self.store not in STORES:
            raise BadInput(f"ledger.store takes vsr or etcd, not {self.store!r}")
        if self.store == "vsr":
            files = (self.etcd_ca, self.etcd_cert, self.etcd_key)
            if any((self.etcd, self.etcd_user, self.etcd_password, *files)):
                raise BadInput(
                    "ledger.etcd says where etcd is, and nothing says that jobs are kept there",
                    "ledger.store = etcd",
                )
            return
        if not self.etcd:
            raise BadInput("ledger.store is etcd, and nothing says where that is", ETCD_HINT)
        endpoints = endpoints_of(self.etcd, ETCD_HINT)
        if not endpoints:
            raise BadInput(f"{self.etcd!r} names no member of etcd", ETCD_HINT)
        secure = endpoints[0].startswith("https:")
        if (self.etcd_ca or self.etcd_cert or self.etcd_key) and not secure:
            raise BadInput(
                "ledger.etcd_ca, etcd_cert and etcd_key need TLS", "ledger.etcd = etcds://HOST:PORT"
            )
        if bool(self.etcd_cert) != bool(self.etcd_key):
            raise BadInput("ledger.etcd_cert and ledger.etcd_key belong together")
        if bool(self.etcd_user) != bool(self.etcd_password):
            raise BadInput(
                "ledger.etcd_user and ledger.etcd_password belong together",
                "the password is best given as HYPERSCALE_LEDGER_ETCD_PASSWORD",
            )

    @property
    def access(self) -> EtcdAccess:
        return EtcdAccess(
            user=self.etcd_user,
            password=self.etcd_password,
            ca=self.etcd_ca,
            cert=self.etcd_cert,
            key=self.etcd_key,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    node: NodeSettings
    gates: tuple[str, ...]
    """All of them by name, this one included; the same list everywhere."""

    datacenters: Datacenters
    """Where the managers of each datacenter are."""

    ledger: LedgerSettings = field(default_factory=LedgerSettings)

    probes: ProbeSettings = field(default_factory=ProbeSettings)

    window_s: float = 0.1
    """How often a gate sends the numbers of running jobs to clients that watch."""

    commit_s: float = 5.0
    """After this long a client is told that it is not known whether a job was taken."""

    datacenter_lost_s: float = 30.0
    """After this long without an answer from any manager of a datacenter its share is given up."""

    totals_s: float = 5.0
    """How often the numbers of each datacenter are written down, for the case that it is lost
    together with the gate that owns the job."""

    begin_within_s: float = 240.0
    """A datacenter that is not ready to begin after this is given up, and the others begin. A
    prepared worker waits for a minute longer."""

    completed_kept_s: float = 300.0
    failed_kept_s: float = 3600.0
    key_kept_s: float = 300.0
    """After its end a job is remembered for one of the first two, by how it ended, but never for
    less than the third: while it is known, a submission that is repeated finds it."""

    jobs_of_others: str = "read"
    """What a client may do with the job of another client: "steer" it, "read" of it, or "none"."""

    def __post_init__(self) -> None:
        if self.jobs_of_others not in OTHERS:
            raise ValueError(f"jobs_of_others takes one of {', '.join(OTHERS)}")
        if self.node.id not in self.gates:
            raise BadInput(
                f"{self.node.id} is not in the list of gates: {', '.join(self.gates)}",
                "--gates names every gate, this one included",
            )
        if not self.datacenters:
            raise BadInput(f"{self.node.id} knows no datacenter", "--datacenter eu=10.0.0.1:7000")
        for name in numbers_of(GateSettings):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above zero")


_NUMBERS = numbers_of(GateSettings)
SECTIONS = (
    member.NODE.without("role", "voters", *member.MANAGERS_ALONE),
    *member.SECTIONS[1:],
    Section(
        "gate",
        {"gates": (), "datacenter": (), **_NUMBERS, "jobs_of_others": "read"},
        flags=("gates", "datacenter"),
    ),
    Section("gate.probes", numbers_of(ProbeSettings)),
    Section(
        "ledger",
        defaults_of(LedgerSettings),
        may_be_zero=("drift",),
        secret=frozenset({"etcd_password"}),
    ),
)


def gate_settings(reading: Reading) -> GateSettings:
    """Raises BadInput. `reading` is of `SECTIONS`."""
    gates, datacenters = (reading.of("gate", name).value for name in ("gates", "datacenter"))
    node = member.node_settings(reading, "gate")
    try:
        return GateSettings(
            node=node,
            gates=tuple(gates) or (node.id,),
            datacenters=datacenters_of(datacenters),
            ledger=reading.build("ledger", LedgerSettings),
            probes=reading.build("probes", ProbeSettings),
            **{name: reading.of("gate", name).value for name in (*_NUMBERS, "jobs_of_others")},
        )
    except ValueError as error:
        raise BadInput(f"[gate]: {error}") from None


def datacenters_of(texts: Sequence[str]) -> Datacenters:
    """`eu=10.0.0.1:7000`, once for each manager that is named. Raises BadInput."""
    found: Datacenters = {}
    for text in texts:
        name, given, place = text.partition("=")
        if not given or not is_name(name):
            raise BadInput(f"--datacenter takes NAME=HOST:PORT, not {text!r}", NAME_RULE)
        try:
            address = Address(*parse_address(place, PORT_DEFAULT))
        except ValueError as error:
            raise BadInput(f"--datacenter {text!r}: {error}") from None
        found[name] = (*found.get(name, ()), address)
    return found
