"""How long a call may take and how far it follows, as an author may write it.

Asked for by the client, and only for calls that say so: most leave both to the workflow.
"""

from __future__ import annotations

import math
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.texts import shown


def call_timeout(value: Any) -> float:
    """The seconds that a call may take, of a number above 0 or a text such as "500ms"."""
    if type(value) is float and 0 < value < math.inf:
        return value
    if isinstance(value, list | tuple):
        raise BadInput(
            f"timeout of a call is {shown(value)} but is one duration, for the whole call",
            "HTTPOptions(connect_timeout=, read_timeout=) set the two apart, for a workflow",
        )
    seconds = parse_duration(value, "timeout of a call")
    if seconds <= 0:
        raise BadInput(f"timeout of a call is {shown(value)} but must be above 0")
    return seconds


def call_redirects(value: Any) -> int:
    """How many redirects a call follows; a bool would be 0 or 1, and is refused."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadInput(
        f"redirects of a call is {shown(value)} but must be a number, how many to follow",
        "0 for none; the workflow's own number when it is left out",
    )
