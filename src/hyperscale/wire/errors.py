"""What can go wrong between two nodes, as types a caller can act on."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """Why something was refused; the sentence beside it is for people."""

    UNKNOWN_KIND = "unknown_kind"
    NOT_ANSWERED = "not_answered"
    OLD_VERSION = "old_version"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"  # the asker alone: others are served
    WRONG_CLUSTER = "wrong_cluster"
    WRONG_ENVIRONMENT = "wrong_environment"
    WRONG_PROTOCOL = "wrong_protocol"
    WRONG_CERTIFICATE = "wrong_certificate"
    WITHDRAWN = "withdrawn"  # its certificate is on the list of those refused
    ROLE_NOT_ALLOWED = "role_not_allowed"
    DECLINED = "declined"  # by the handler, for a reason of its own


class WireError(Exception):
    """Anything that keeps a message from being answered."""


class Refused(WireError):
    """The other side understood and said no. Trying again before `retry_after_s` is pointless;
    None: trying again is pointless altogether."""

    def __init__(
        self,
        kind: str,
        reason: str,
        retry_after_s: float | None = None,
        code: str = Reason.DECLINED,
    ) -> None:
        super().__init__(f"{kind}: {reason}" if kind else reason)
        self.kind = kind
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.code = code


class RemoteFailed(WireError):
    """The other side tried and failed; what happened is in its log, not in this message."""

    def __init__(self, kind: str, error: str) -> None:
        super().__init__(f"{kind} failed at the other side ({error})")
        self.kind = kind
        self.error = error


class DeadlineExceeded(WireError):
    """No answer in time. The request may have been carried out."""


class Disconnected(WireError):
    """The connection ended. `maybe_done` tells whether the request may have been carried out."""

    def __init__(self, sentence: str, maybe_done: bool = False) -> None:
        super().__init__(sentence)
        self.maybe_done = maybe_done


class NobodyListens(Disconnected):
    """The machine is there and refuses the connection: the process that listened is gone."""


class Malformed(WireError):
    """Bytes that no correct node sends; the connection they came from is closed."""


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """A `Refused` on its way."""

    kind: str
    code: str
    reason: str
    retry_after_s: float | None = None


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """A `RemoteFailed` on its way: the type of the error, never its trace."""

    kind: str
    error: str
