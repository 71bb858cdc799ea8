"""The numbers of a worker."""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path


def new_worker_id(node: str = "") -> str:
    """The node's name, else the host's, and chance: every process has an id of its own, so
    one that was killed can be started again at once."""
    name = (node or socket.gethostname()).lower()
    label = "".join(c if c.isalnum() and c.isascii() else "-" for c in name)
    return f"{label[:50].strip('-') or 'worker'}-{uuid.uuid4().hex[:8]}"


def state_directory() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "hyperscale" / "scheduler"


def spool_of(store: str) -> Path:
    """Of the store at this address alone: another one knows nothing of its jobs, and would have
    their reports thrown away. How to log in is no part of what a store is."""
    scheme, _, rest = store.partition(":")
    if scheme == "sqlite":
        place = str(Path(rest.removeprefix("//")).resolve())
    else:
        place = rest.rpartition("@")[2].removeprefix("//")
    digest = hashlib.sha256(f"{scheme}:{place}".encode()).hexdigest()
    return state_directory() / "spool" / digest[:16]


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    id: str = field(default_factory=new_worker_id)
    address: str = ""
    slots: int = 4
    capabilities: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    spool: Path
    """Of one store only; see `spool_of`."""
    beat_s: float = 15.0
    """Heartbeat of the worker; 45 s of silence and it is taken for dead."""
    dead_after_s: float = 45.0
    job_beat_s: float = 3.0
    """Heartbeat of running jobs. It brings back wishes to cancel, so it is the quicker one."""
    lease_s: float = 45.0
    poll_s: float = 1.0
    """A claim is asked for at least so often, whatever the wake-ups say."""
    shutdown_timeout_s: float = 60.0

    @property
    def processes(self) -> Path:
        """Where the marks of jobs' processes are; see `orphans`."""
        return self.spool / "processes"
