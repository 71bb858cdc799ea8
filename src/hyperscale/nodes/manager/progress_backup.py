"""What a leader has heard of running parts, told to the other managers.

The numbers of a part that runs are in its leader's memory alone. A new leader asks the worker for
them; if that has died too, what it had reported would be gone with the old leader. So a leader
passes on the sums of each part about once a second. They are written down when the part is lost:
records hold decisions, and numbers that change ten times a second would fill them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.nodes.protocol.records import Note, NoteParts
from hyperscale.wire.serving import Call

if TYPE_CHECKING:
    from hyperscale.nodes.manager.manager import Manager

BACKUP_S: Final = 1.0
# Putting one together takes a fraction of a millisecond, some kilobytes travel to each manager: a
# leader of a thousand parts tells of each every twenty seconds.
PARTS_MAX: Final = 50


class ProgressBackup:
    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._known: dict[Part, Note] = {}
        self._told: dict[Part, tuple[Fence, int]] = {}
        self._turn: deque[Part] = deque()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, part: Part, fence: Fence) -> Note | None:
        note = self._known.get(part)
        return note if note is not None and note.fence == fence else None

    def heard(self, _call: Call, told: NoteParts) -> None:
        manager = self._manager
        if told.term < manager.leadership.newest_term or manager.leadership.term:
            return
        for note in told.notes:
            placement = manager.jobs.replicated.placement(note.part)
            if placement is not None and placement.fence == note.fence:
                self._known[note.part] = note

    def forget(self, job_id: str) -> None:
        for known in (self._known, self._told):
            for part in [part for part in known if part.job_id == job_id]:
                del known[part]

    def tell(self) -> None:
        """The parts whose turn it is and that have moved since."""
        manager = self._manager
        others = [voter for voter in manager.settings.node.voters if voter != manager.id]
        if not others:
            return
        if not self._turn:
            self._turn.extend(manager.live.running())
        notes = []
        for _ in range(min(PARTS_MAX, len(self._turn))):
            part = self._turn.popleft()
            seen = manager.live.seen(part)
            if seen is not None and self._told.get(part) != seen:
                self._told[part] = seen
                notes.append(manager.live.backup(part))
        message = NoteParts(
            term=manager.leadership.term, notes=tuple(note for note in notes if note is not None)
        )
        for voter in others if message.notes else ():
            peer = manager.leadership.peer(voter)
            if peer is not None:
                peer.tell(message)
