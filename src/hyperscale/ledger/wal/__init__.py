"""One write-ahead log under everything durable.

    log = await WriteAheadLog.open(host, "wal", deliver=state.apply)   # recovers first
    lsn = await log.append(b"...")                                    # returns when on the platter
    async for record in log.read(from_lsn=lsn): ...
    await log.close()

`record` and `segment` are the bytes, `recovery` the table of what is decided about them after a
crash, `log` the single writer, `reader` the way back.
"""

from hyperscale.ledger.wal.errors import (
    LogClosed,
    LogCompacted,
    LogDamaged,
    LogFailed,
    LogFull,
    RecordTooLarge,
)
from hyperscale.ledger.wal.log import WriteAheadLog
from hyperscale.ledger.wal.opening import Recovered
from hyperscale.ledger.wal.record import Record
from hyperscale.ledger.wal.settings import WalSettings

__all__ = [
    "LogClosed",
    "LogCompacted",
    "LogDamaged",
    "LogFailed",
    "LogFull",
    "Record",
    "RecordTooLarge",
    "Recovered",
    "WalSettings",
    "WriteAheadLog",
]
