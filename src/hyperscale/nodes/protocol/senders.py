"""Which role may send which kind of message, in one table.

A certificate lets a node connect; this says what it may ask for once it is connected. It is looked
at where a request enters, before its body is decoded. A kind without a row is refused to everybody.
Managers stand among those who may ask about jobs because one that does not lead passes on to the
leader what it was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Who speaks for people: a client, or what stands between clients and managers. To a gate, managers
# speak for nobody: see `senders_to`.
_ASKING: Final = frozenset({"client", "gate", "manager"})
_LEADER: Final = frozenset({"manager"})
_WORKER: Final = frozenset({"worker"})
_MEMBERS: Final = frozenset({"gate", "manager", "worker", "probe"})
_LOOKING: Final = frozenset({"client", "gate", "manager", "probe"})
# Comes back to whoever asked, and is never asked itself.
_ANSWER: Final[frozenset[str]] = frozenset()

MAY_SEND: Final[Mapping[str, frozenset[str]]] = {
    # jobs
    "submit.job": _ASKING,
    "steer.job": _ASKING,
    "ask.job": _ASKING,
    "ask.jobs": _ASKING,
    "ask.results": _ASKING,
    "ask.workers": _ASKING,
    "drain.worker": _ASKING,
    "watch.job": _ASKING,
    "job.ack": _ANSWER,
    "steer.ack": _ANSWER,
    "job.view": _ANSWER,
    "job.views": _ANSWER,
    "job.results": _ANSWER,
    "worker.views": _ANSWER,
    "drain.ack": _ANSWER,
    "job.update": _ANSWER,
    # parts: from the leader to a worker
    "dispatch.part": _LEADER,
    "start.part": _LEADER,
    "steer.part": _LEADER,
    "tear.down.part": _LEADER,
    "ask.parts": _LEADER,
    "drain.order": _LEADER,
    "dispatch.answer": _ANSWER,
    "part.answer": _ANSWER,
    "held.parts": _ANSWER,
    "drain.answer": _ANSWER,
    # parts: from a worker to the leader
    "register.worker": _WORKER,
    "tell.event": _WORKER,
    "report.progress": _WORKER,
    "ask.extension": _WORKER,
    "leave.worker": _WORKER,
    "registered": _ANSWER,
    "event.answer": _ANSWER,
    "progress.answer": _ANSWER,
    "extension.answer": _ANSWER,
    "left": _ANSWER,
    # managers among themselves
    "records.request": _LEADER,
    "note.parts": _LEADER,
    "records.reply": _ANSWER,
    # gates, datacenters, and who asks about them
    "probe.datacenter": frozenset({"gate"}),
    "ask.datacenters": _ASKING,
    "ask.route": _ASKING,
    "datacenter.report": _ANSWER,
    "datacenter.states": _ANSWER,
    "route.view": _ANSWER,
    # gates among themselves
    "ledger.bundle": frozenset({"gate"}),
    # members
    "member.exchange": _MEMBERS,
    "discovery.probe": _MEMBERS,
    "member.ask_members": _LOOKING,
    "member.ask_status": _LOOKING,
    "member.exchange_answer": _ANSWER,
    "discovery.answer": _ANSWER,
    "member.members": _ANSWER,
    "member.status": _ANSWER,
}


def senders_to(role: str) -> Mapping[str, frozenset[str]]:
    """The table as it holds at a node of this role. The managers of a datacenter run what gates
    send them, and ask nothing: through a gate they would reach every other datacenter."""
    if role != "gate":
        return MAY_SEND
    return {
        kind: senders - {"manager"} if senders is _ASKING else senders
        for kind, senders in MAY_SEND.items()
    }
