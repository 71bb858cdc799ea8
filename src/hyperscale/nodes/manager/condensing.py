"""What managers keep of a job that is over: its end, and how its parts came to theirs.

The numbers of all parts are in the job's own result by then, code and contexts have no reader any
more, and together they are hundreds of times as large as what is kept. Records and replicated are
condensed alike, so that a manager that restarts knows what one that did not knows.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from hyperscale.cluster.jobs import records as job_records
from hyperscale.cluster.jobs.records import (
    Finished,
    JobRecord,
    PartEnded,
    PartLost,
    Started,
    Submitted,
    ToldLate,
)
from hyperscale.cluster.jobs.state import Condense
from hyperscale.ledger.records import Record
from hyperscale.nodes.manager.part_end import decode_end, encode_end
from hyperscale.nodes.protocol.jobs import Body


def condensed_body(body: bytes) -> bytes:
    """What a listing or a watcher is told of the job."""
    known = msgspec.msgpack.decode(body, type=Body)
    return msgspec.msgpack.encode(
        replace(known, source=b"", overrides=b"", env={}, secrets=(), sealed=b"")
    )


def condensed_result(result: bytes) -> bytes:
    """How a part ended, without what it measured and handed on."""
    return encode_end(replace(decode_end(result), state=b"", context={}, provided={}))


CONDENSE = Condense(condensed_body, condensed_result)


def condensed(records: Sequence[Record]) -> Sequence[Record]:
    """All records of a job whose last one has ended it."""
    decoded = [job_records.decode(record.payload) for record in records]
    if not any(isinstance(one, Finished) and one.results for one in decoded):
        return records
    return [
        record if less is one else replace(record, payload=job_records.encode(less))
        for record, one in zip(records, decoded, strict=True)
        for less in [condensed_record(one)]
    ]


def condensed_record(record: JobRecord) -> JobRecord:
    match record:
        case Submitted():
            return replace(record, body=condensed_body(record.body))
        case PartEnded(result=result) | PartLost(result=result) | ToldLate(result=result) if result:
            return replace(record, result=condensed_result(result))
        case Started(context=context) if context:
            return replace(record, context=b"")
    return record
