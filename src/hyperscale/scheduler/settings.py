"""Every setting of the scheduler, in one place. `election_ttl_s` is `--election-ttl-s`,
`HYPERSCALE_SCHEDULER_ELECTION_TTL_S`, and `election-ttl-s` in the `[scheduler]` table; the
strongest of the three counts, then the default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hyperscale.config.sections import Reading, Section, defaults_of
from hyperscale.errors import BadInput
from hyperscale.scheduler.leader.election import TTL_S
from hyperscale.scheduler.store.types import Keep
from hyperscale.scheduler.worker.registration import CAPACITY_MAX

ENV_PREFIX: Final = "HYPERSCALE_SCHEDULER_"


@dataclass(frozen=True, kw_only=True)
class SchedulerSettings:
    store: str = "sqlite:hyperscale-scheduler.db"
    election: str = "local"
    node: str = ""
    """Empty: host name and chance."""
    address: str = ""
    """Where this node's API is reached; followers tell clients the leader's."""
    election_ttl_s: float = TTL_S
    etcd_user: str = ""
    etcd_password: str = field(default="", repr=False)
    etcd_ca: str = ""
    """PEM file; empty: the certificate authorities of the system."""
    etcd_cert: str = ""
    etcd_key: str = ""
    worker: bool = True
    slots: int = 4
    capabilities: tuple[str, ...] = ()
    spool: str = ""
    """Directory of unsent reports; empty: in the user's state directory."""
    python_allow: tuple[str, ...] = ()
    loadtest_dir: str = ""
    """Where the tests of `loadtest` jobs lie; empty: in the working directory."""
    http_allow: tuple[str, ...] = ()
    """Hosts and networks beside the public Internet that `http` jobs may call."""
    command: bool = False
    shutdown_timeout_s: float = 60.0
    beat_s: float = 15.0
    dead_after_s: float = 45.0
    lease_s: float = 45.0
    grace_s: float = 45.0
    keep: Keep = field(default_factory=Keep)

    def __post_init__(self) -> None:
        if not self.election_ttl_s >= 1:
            raise BadInput("election-ttl-s must be at least 1")
        if not 1 <= self.slots <= CAPACITY_MAX:
            raise BadInput(f"slots must be in 1..{CAPACITY_MAX}")
        if not 0 < 2 * self.beat_s <= self.dead_after_s:
            raise BadInput("dead-after-s must be at least twice beat-s")
        self._check_etcd()

    def told(self) -> str:
        """What its jobs may do, as a sentence for whoever starts it."""
        if not self.worker:
            return "it runs no jobs itself"
        ways = [
            f"load tests beneath {Path(self.loadtest_dir).resolve()}",
            _requests(self.http_allow),
        ]
        ways += [f"functions {', '.join(self.python_allow)}"] if self.python_allow else []
        ways += ["any program"] if self.command else []
        return f"jobs run as {_user()}: {', '.join(ways)}"

    def _check_etcd(self) -> None:
        if (self.etcd_ca or self.etcd_cert or self.etcd_key) and "etcds://" not in self.election:
            raise BadInput("etcd-ca, etcd-cert and etcd-key need TLS", "--election etcds://...")
        if bool(self.etcd_cert) != bool(self.etcd_key):
            raise BadInput("etcd-cert and etcd-key belong together")
        if bool(self.etcd_user) != bool(self.etcd_password):
            raise BadInput(
                "etcd-user and etcd-password belong together",
                f"the password is best given as {ENV_PREFIX}ETCD_PASSWORD",
            )


def _requests(allowed: tuple[str, ...]) -> str:
    return "http requests" + (f" (also to {', '.join(allowed)})" if allowed else "")


def _user() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):  # not everywhere, and not everybody, has a name
        return "its user"


# Names of the process around it stand in the same table (`scheduler.http.settings`).
OWN: Final = defaults_of(SchedulerSettings)
KEEP: Final = Section(
    "scheduler.keep", dict(zip(Keep.__struct_fields__, Keep.__struct_defaults__, strict=True))
)


def scheduler_settings(reading: Reading) -> SchedulerSettings:
    """Raises BadInput. `reading` has the section `scheduler`, and `KEEP`."""
    said = {name: reading.of("scheduler", name).value for name in OWN}
    return SchedulerSettings(**said, keep=reading.build("keep", Keep))
