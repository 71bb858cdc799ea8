"""Every setting of the scheduler, in one place. `election_ttl_s` is `--election-ttl-s`,
`HYPERSCALE_SCHEDULER_ELECTION_TTL_S`, and `election-ttl-s` in the `[scheduler]` table; the
strongest of the three counts, then the default.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from hyperscale.errors import BadInput
from hyperscale.scheduler.leader.election import TTL_S
from hyperscale.scheduler.store.types import Keep
from hyperscale.scheduler.worker.registration import CAPACITY_MAX

ENV_PREFIX: Final = "HYPERSCALE_SCHEDULER_"
_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})


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


def _text(value: object) -> str:
    return str(value)


def _seconds(value: object) -> float:
    number = float(str(value))
    if not 0 <= number < math.inf:
        raise ValueError("seconds, 0 or more")
    return number


def _switch(value: object) -> bool:
    word = str(value).lower()
    if word not in _YES | _NO:
        raise ValueError("true or false")
    return word in _YES


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value)
    return tuple(part.strip() for part in str(value).split(",") if part.strip())


def _keep(value: object) -> Keep:
    if isinstance(value, Keep):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("a table of seconds")
    try:
        return Keep(**{str(k).replace("-", "_"): float(v) for k, v in value.items()})
    except TypeError:
        raise ValueError("a table of " + ", ".join(Keep.__struct_fields__)) from None


_READERS: Final[dict[str, Callable[[object], object]]] = {
    "worker": _switch,
    "command": _switch,
    "slots": lambda value: int(str(value)),
    "capabilities": _texts,
    "python_allow": _texts,
    "http_allow": _texts,
    "keep": _keep,
    **{each.name: _seconds for each in fields(SchedulerSettings) if each.name.endswith("_s")},
}
NAMES: Final = tuple(each.name for each in fields(SchedulerSettings))


def settings_from(
    flags: Mapping[str, object], env: Mapping[str, str], table: Mapping[str, object]
) -> SchedulerSettings:
    """Flags that are None were not given."""
    said: dict[str, Any] = {}
    for name, value in table.items():
        said |= _read(name.replace("-", "_"), value, f"{name} in [scheduler]")
    for name in NAMES:
        variable = ENV_PREFIX + name.upper()
        if variable in env:
            said |= _read(name, env[variable], variable)
    for name, value in flags.items():
        if value is not None:
            said |= _read(name, value, "--" + name.replace("_", "-"))
    return SchedulerSettings(**said)


def _read(name: str, value: object, where: str) -> dict[str, object]:
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0].replace('_', '-')}?" if near else ""
        raise BadInput(f"{where} is not a setting of the scheduler", hint)
    try:
        return {name: _READERS.get(name, _text)(value)}
    except ValueError as error:
        raise BadInput(f"{where}: {value!r} does not fit", str(error)) from None
