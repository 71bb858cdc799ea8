"""Who asks, by certificate, and what somebody may do with a job of another.

A job belongs to the client whose certificate submitted it, and to the groups that this certificate
names. Without certificates, and for one that names nobody, there are no owners and everybody may do
everything. What a client says of itself beside that (user and machine) is a remark for people. The
group `operators` may do everything with every job, and it alone may drain workers.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

from hyperscale.wire.serving import Call

NOT_OWNER: Final = "not_owner"
OPERATORS: Final = "operators"
OTHERS: Final = ("steer", "read", "none")
NO_OPERATOR: Final = (
    f"is not of the group {OPERATORS}: hyperscale certs DIR --node client:NAME --group {OPERATORS}"
)
REMARK_CHARS_MAX: Final = 200


class Ownership(Protocol):
    @property
    def owner(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...


class Owned(Protocol):
    """A job, as far as it matters here."""

    @property
    def job_id(self) -> str: ...

    @property
    def submitted(self) -> Ownership: ...


class Asker(NamedTuple):
    """`certified`: its certificate gives it the name."""

    name: str
    certified: bool = False
    groups: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """Of what it submits; empty: nobody's."""
        return self.name if self.certified else ""

    def signed(self, remark: str) -> str:
        """Who did something, for people: the name that is proven, then what it says of itself."""
        if not self.certified:
            return remark or self.name
        return f"{self.name} ({remark[:REMARK_CHARS_MAX]})" if remark else self.name


NOBODY: Final = Asker("")


def asker(call: Call, message: Any) -> Asker:
    """Who asks. A manager or gate that passes a question on says whom it had before it, and vouches
    for the certificate; nobody else may say so. A gate that asks for itself looks after jobs that
    it has checked."""
    if call.peer.role in ("gate", "manager") and message.asked_by:
        return Asker(message.asked_by, message.certified, message.groups)
    if call.peer.role == "gate":
        return Asker(call.peer.node_id, call.peer.certified, (OPERATORS,))
    return Asker(call.peer.node_id, call.peer.certified, call.peer.groups)


class Access:
    def __init__(self, others: str, with_certificates: bool) -> None:
        """`others`: what a client may do with a job of another client, one of `OTHERS`."""
        self._others = others
        self._with_certificates = with_certificates

    def may_read(self, who: Asker, job: Owned) -> bool:
        return self._others != "none" or self._is_own(who, job)

    def may_steer(self, who: Asker, job: Owned) -> bool:
        return self._others == "steer" or self._is_own(who, job)

    def may_drain(self, who: Asker) -> bool:
        """A drained worker is lost to everybody's jobs."""
        return not self._with_certificates or OPERATORS in who.groups

    def denial(self, who: Asker, job: Owned) -> str:
        may = "may only read it" if self._others == "read" else "may neither read nor steer it"
        return (
            f"job {job.job_id} belongs to {job.submitted.owner}; {who.name} {may} "
            "(manager.jobs_of_others)"
        )

    def _is_own(self, who: Asker, job: Owned) -> bool:
        submitted = job.submitted
        if not submitted.owner or submitted.owner == who.owner:
            return True
        return not {OPERATORS, *submitted.groups}.isdisjoint(who.groups)
