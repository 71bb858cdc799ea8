"""Settings from the environment, taken out of it.

A process shows the environment it was started with in /proc for as long as it lives, whatever it
removes from it, and its jobs can read that. So a process that was given secrets this way starts
itself again without them and hands them over in memory.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final

from hyperscale.workload.secrets import is_sensitive

_HANDED: Final = "HYPERSCALE_HANDED_OVER"


def taken_environment(prefix: str) -> dict[str, str]:
    """All variables of this prefix; afterwards neither this process nor its children have them."""
    handed = os.environ.pop(_HANDED, "")
    if handed:
        with os.fdopen(int(handed), "rb") as memory:
            memory.seek(0)
            found: dict[str, str] = json.load(memory)
        return found
    found = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(prefix)}
    if hasattr(os, "memfd_create") and any(map(_is_secret, found, found.values())):
        _start_again(found)
    return found


def _is_secret(name: str, value: str) -> bool:
    return bool(value) and (is_sensitive(name) or "@" in value)  # an address with a password


def _start_again(found: dict[str, str]) -> None:
    memory = os.memfd_create("settings")
    os.write(memory, json.dumps(found).encode())
    os.set_inheritable(memory, True)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, sys.orig_argv, {**os.environ, _HANDED: str(memory)})
