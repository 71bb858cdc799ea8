"""A question passed on to the node whose it is to answer: a leader, or the owner of a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from hyperscale.nodes.member.access import asker
from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Reason, Refused
from hyperscale.wire.serving import Call

M = TypeVar("M", bound=msgspec.Struct)

# An election takes some seconds; asking this often finds the new leader soon after.
ASK_AGAIN_S = 0.5
PASS_ON_TIMEOUT_S = 10.0


def passed_on(call: Call, message: M) -> M:
    """Whoever passes it on vouches for who asked: neither is the client's to say. A gate's word
    for whom it asks is passed on with it."""
    who = asker(call, message)
    return msgspec.structs.replace(
        message,
        passed_on=True,
        asked_by=who.name,
        certified=who.certified,
        groups=who.groups,
    )


@contextmanager
def passing_on(call: Call) -> Iterator[None]:
    """A node that is gone is no fault of ours: whoever asked us asks again."""
    try:
        yield
    except (Disconnected, DeadlineExceeded) as error:
        raise Refused(
            call.kind.name,
            f"who is to answer does not: {error}",
            ASK_AGAIN_S,
            Reason.OVERLOADED,
        ) from None
