"""What a log may refuse, each with a sentence for the person who has to act."""

from __future__ import annotations

from hyperscale.errors import BadInput, HyperscaleError


class LogFailed(HyperscaleError):
    """The disk failed under the log. What was acknowledged is safe; nothing more is accepted,
    because after a failed write or sync nobody can tell what is on the platter."""

    def __init__(self, directory: str, cause: BaseException) -> None:
        super().__init__(
            f"the log in {directory or '.'} failed and takes no more records: {cause}",
            "see to the disk, then restart this node: it recovers what was acknowledged",
        )
        self.directory = directory
        self.cause = cause


class LogClosed(HyperscaleError):
    """The log was closed before the record was accepted, or stopped before it was durable."""


class LogFull(HyperscaleError):
    """The queue of a busy disk is full; nothing was accepted. Wait and try again, or `append`,
    which waits by itself."""


class RecordTooLarge(BadInput):
    """A record is refused before anything is written."""


class LogCompacted(HyperscaleError):
    """The records asked for were removed after a checkpoint covered them."""


class LogDamaged(HyperscaleError):
    """Bytes that were durable are not what was written. Nothing is skipped or cut silently."""

    def __init__(self, path: str, offset: int, what: str, last_good_lsn: int) -> None:
        super().__init__(
            f"{path} is damaged at byte {offset}: {what}; good up to LSN {last_good_lsn}",
            "where other managers hold the same, empty the data directory: they bring it up to"
            " date; `hyperscale wal verify DIR` shows the extent, `hyperscale wal repair DIR` cuts"
            " the log at the damage and loses what follows",
        )
        self.path = path
        self.offset = offset
        self.what = what
        self.last_good_lsn = last_good_lsn
