"""An election by its address, as settings and flags name it."""

from __future__ import annotations

from hyperscale.errors import BadInput
from hyperscale.runtime.etcd import ANONYMOUS, SCHEMES, EtcdAccess, endpoints_of
from hyperscale.runtime.host import Host
from hyperscale.scheduler.addresses import plain_address
from hyperscale.scheduler.leader.election import TTL_S, Election, Lease, LeasedElection
from hyperscale.scheduler.leader.local_lease import LocalLease
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.telemetry.hook import NO_TELEMETRY, Telemetry

_HINT = (
    "local, etcd://HOST:PORT[,HOST:PORT][/PREFIX], etcds:// with TLS, redis://HOST:PORT/DB"
    " or postgres://USER@HOST/DATABASE"
)


def open_election(
    host: Host,
    address: str,
    store: Store,
    node: str,
    node_address: str = "",
    ttl_s: float = TTL_S,
    access: EtcdAccess = ANONYMOUS,
    telemetry: Telemetry = NO_TELEMETRY,
) -> Election:
    """`access` counts for etcd only. Raises BadInput."""
    lease: Lease
    scheme, separator, rest = address.partition("://")
    if address == "local":
        lease = LocalLease(host.clock, store, node, node_address, ttl_s)
    elif scheme in SCHEMES and rest:
        from hyperscale.scheduler.leader.etcd_lease import EtcdLease

        hosts, _, prefix = rest.partition("/")
        endpoints = endpoints_of(f"{scheme}://{hosts}", _HINT)
        prefix = prefix or "hyperscale-scheduler"
        lease = EtcdLease(endpoints, node, node_address, ttl_s, prefix, access)
    elif scheme in ("redis", "rediss", "unix") and separator and rest:
        from hyperscale.scheduler.leader.redis_lease import RedisLease

        lease = RedisLease(address, node, node_address, ttl_s)
    elif scheme in ("postgres", "postgresql") and separator and rest:
        from hyperscale.scheduler.leader.postgres_lease import PostgresLease

        lease = PostgresLease(address, node, node_address, ttl_s)
    else:
        raise BadInput(f"{plain_address(address)!r} is not an election", _HINT)
    return LeasedElection(host, lease, ttl_s, telemetry=telemetry, service=scheme)


def election_of(election: str, store: str) -> str:
    """`local` is by the store: where that knows a better way than comparing a row, by that one."""
    return store if election == "local" and store.startswith("postgres") else election
