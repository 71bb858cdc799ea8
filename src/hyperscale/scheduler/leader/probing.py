"""A silent worker is asked at the address it told, before it is taken for dead.

Only an answer that names the worker counts: after a crash somebody else may have the address. It is
asked whether it is this one, because it does not tell strangers who it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final
from urllib.parse import quote

import msgspec

from hyperscale.errors import BadInput
from hyperscale.scheduler.exchange import ExchangeFailed, exchange
from hyperscale.scheduler.worker.registration import Worker

ANSWER_S: Final = 2.0
"""A living process answers in milliseconds; recovery may wait this much longer."""
ASKED_MAX: Final = 100
"""At once; more that fall silent together are judged without being asked."""

Probe = Callable[[Worker], Awaitable[bool]]


class _Alive(msgspec.Struct):
    worker: str


async def answers(worker: Worker) -> bool:
    if not worker.address.startswith(("http://", "https://")):
        return False
    try:
        async with asyncio.timeout(ANSWER_S):
            answer = await exchange("GET", _question(worker))
        said = msgspec.json.decode(answer.body, type=_Alive)
    except (TimeoutError, ExchangeFailed, BadInput, msgspec.DecodeError):
        return False
    return said.worker == worker.id


def _question(worker: Worker) -> str:
    return f"{worker.address.rstrip('/')}/health/live?worker={quote(worker.id, safe='')}"


async def answering(workers: Iterable[Worker], probe: Probe) -> frozenset[str]:
    """Ids of those who answer."""
    asked = sorted(workers, key=lambda worker: worker.id)[:ASKED_MAX]
    heard = await asyncio.gather(*(probe(worker) for worker in asked))
    return frozenset(worker.id for worker, good in zip(asked, heard, strict=True) if good)
