"""What authors' code may see of a worker's environment: all but what concerns the cluster.

Variables of ours say where the secret, the keys and the certificates are, and may be tokens. A
test gets its own with the submission (`-e NAME=VALUE`). This keeps them out of reports and stack
traces; it is no wall: generators run as the worker's own user, who can read those files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "HYPERSCALE_"
# Where systemd puts credentials of a unit, and how a unit speaks with it.
OF_THE_UNIT: Final = frozenset({"CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET"})


def without_ours(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(PREFIX) and name not in OF_THE_UNIT
    }
