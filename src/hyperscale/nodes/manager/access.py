"""Who asks, by certificate, and what somebody may do with a job of another.

A job belongs to the client whose certificate submitted it. Without certificates, and for one that
names nobody, there are no owners and everybody may do everything. What a client says of itself
beside that (user and machine) is a remark for people.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hyperscale.cluster.jobs.state import JobState
from hyperscale.wire.serving import Call

NOT_OWNER: Final = "not_owner"
OTHERS: Final = ("steer", "read", "none")
REMARK_CHARS_MAX: Final = 200


class Asker(NamedTuple):
    """`certified`: its certificate gives it the name."""

    name: str
    certified: bool = False

    @property
    def owner(self) -> str:
        """Of what it submits; empty: nobody's."""
        return self.name if self.certified else ""

    def signed(self, remark: str) -> str:
        """Who did something, for people: the name that is proven, then what it says of itself."""
        if not self.certified:
            return remark or self.name
        return f"{self.name} ({remark[:REMARK_CHARS_MAX]})" if remark else self.name


def asker(call: Call, message: Any) -> Asker:
    """Who asks. A manager that passes a question on says whom it had before it, and vouches for
    the certificate; nobody else may say so."""
    if call.peer.role == "manager" and message.asked_by:
        return Asker(str(message.asked_by), bool(message.certified))
    return Asker(call.peer.node_id, call.peer.certified)


class Access:
    def __init__(self, others: str) -> None:
        """`others`: what a client may do with a job of another client, one of `OTHERS`."""
        self._others = others

    def may_read(self, who: Asker, job: JobState) -> bool:
        return self._others != "none" or self._is_own(who, job)

    def may_steer(self, who: Asker, job: JobState) -> bool:
        return self._others == "steer" or self._is_own(who, job)

    def denial(self, who: Asker, job: JobState) -> str:
        may = "may only read it" if self._others == "read" else "may neither read nor steer it"
        return (
            f"job {job.job_id} belongs to {job.submitted.owner}; {who.name} {may} "
            "(manager.jobs_of_others)"
        )

    def _is_own(self, who: Asker, job: JobState) -> bool:
        owner = job.submitted.owner
        return not owner or owner == who.owner
