"""A tiny world for the replica core alone: messages in a bag, disks that finish when told, crashes
that lose what was not written, and a judge who remembers everything that was ever committed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.records import Record, RecordsSettings
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.messages import (
    Append,
    Appended,
    Fetch,
    Fetched,
    Recover,
    Recovered,
)
from hyperscale.ledger.records.replica import DiskWrite, Promise, Replica
from hyperscale.ledger.records.states import Role
from hyperscale.ledger.records.store import Found
from hyperscale.ledger.wal import Record as WalRecord

SETTINGS = [RecordsSettings(batch_records_max=size, pipeline_max=2) for size in (1, 3)]
"""With single entries a voter may have the last entry of an old term and not yet the new one."""


class Broken(AssertionError):
    """What must never happen has happened."""


@dataclass
class Disk:
    saved: Found = field(default_factory=Found)
    """The last checkpoint."""
    writes: list[DiskWrite] = field(default_factory=list)
    """Durable, after the checkpoint."""


@dataclass
class Node:
    name: str
    replica: Replica
    disk: Disk = field(default_factory=Disk)
    writing: list[tuple[int, DiskWrite]] = field(default_factory=list)
    replies: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    life: int = 0
    disks: int = 0
    """How many it has lost."""
    seen: int = 0
    """Committed entries the judge has looked at."""
    fetched: int = 0
    """While recovering: fetched from the donor up to here."""


class RecordsWorld:
    def __init__(
        self,
        voters: int,
        seed: int,
        make: type[Replica] = Replica,
        hasty: bool = False,
        forgetful: bool = False,
        wipes: bool = False,
    ) -> None:
        """`hasty` nodes answer before the disk has written; `forgetful` ones lose promises. With
        `wipes` all begin with empty disks, and now and then one comes back with an empty one."""
        self.dice = random.Random(seed)
        self.settings = self.dice.choice(SETTINGS)
        self.make = make
        self.hasty = hasty
        self.forgetful = forgetful
        self.wipes = wipes
        self.names = [f"m{number}" for number in range(voters)]
        self.bag: list[tuple[Callable[[], None], Callable[[], None]]] = []
        """What happens when a message arrives, and when its sender gives it up."""
        self.apart: set[str] = set()
        """Hears nobody, and is not heard."""
        self.term = 0
        self.committed: dict[int, Entry] = {}
        self.proposed = 0
        found = _blank() if wipes else Found()
        self.nodes = {name: Node(name, self._replica(name, found)) for name in self.names}

    def run(self, steps: int) -> None:
        acts = [self._elect, self._crash, self._drop, self._repeat, self._save, self._cut]
        acts += [self._wipe] if self.wipes else []
        acts += [self._propose] * 2 + [self._write] * 6 + [self._deliver] * 12 + [self._send] * 8
        for _ in range(steps):
            self.dice.choice(acts)()
            for node in self.nodes.values():
                self._settle(node)

    def heal(self, leader: str, rounds: int = 400) -> None:
        """Everything works: the leader of a new term must get everybody to the same log."""
        self.apart = set()
        self.term += 1
        self.nodes[leader].replica.lead(self.term)
        for _ in range(rounds):
            for node in self.nodes.values():
                self._write_all(node)
                self._send_of(node)
                self._settle(node)
            bag, self.bag = self.bag, []
            for arrives, _ in bag:
                arrives()
            for node in self.nodes.values():
                self._settle(node)
            if self._agreed(leader):
                return
        raise Broken("no agreement")

    def _agreed(self, leader: str) -> bool:
        ends = {(n.replica.log.last_index, n.replica.commit_index) for n in self.nodes.values()}
        lead = self.nodes[leader].replica
        return lead.ready and ends == {(lead.log.last_index, lead.log.last_index)}

    # -- acts -----------------------------------------------------------------------------------

    def _some(self) -> Node:
        return self.nodes[self.dice.choice(self.names)]

    def _elect(self) -> None:
        if self.dice.random() < 0.4:
            self.term += 1
            node = self._some()
            node.fetched = 0
            node.replica.lead(self.term)

    def _cut(self) -> None:
        if self.dice.random() < 0.3:
            size = self.dice.randint(0, len(self.names) // 2)
            self.apart = set(self.dice.sample(self.names, size))

    def _propose(self) -> None:
        for node in self.nodes.values():
            if node.replica.ready:
                self.proposed += 1
                node.replica.propose(Record(0, "job", self.proposed, b"", Fence(1)))

    def _write(self) -> None:
        node = self._some()
        for _ in range(self.dice.randint(0, len(node.writing))):
            self._write_one(node)

    def _write_all(self, node: Node) -> None:
        while node.writing:
            self._write_one(node)

    def _write_one(self, node: Node) -> None:
        number, write = node.writing.pop(0)
        node.disk.writes.append(write)
        node.replica.written(number)

    def _crash(self) -> None:
        if self.dice.random() < 0.2:
            node = self._some()
            disk = node.disk
            found = Found()
            found.__dict__.update(disk.saved.__dict__)
            found.entries = list(disk.saved.entries)
            writes = [w for w in disk.writes if not (self.forgetful and isinstance(w, Promise))]
            found.replay([WalRecord(0, _encode(write)) for write in writes])
            if self.wipes and not disk.writes and not found.base_index:
                found.newcomer = True
            self._reborn(node, found, disk)

    def _reborn(self, node: Node, found: Found, disk: Disk) -> None:
        again = Node(node.name, self._replica(node.name, found), disk)
        again.life, again.disks = node.life + 1, node.disks
        again.seen = found.base_index
        self.nodes[node.name] = again

    def _wipe(self) -> None:
        """No second one before the first counts again: more than a minority would be lost."""
        forgotten = any(node.replica.newcomer for node in self.nodes.values())
        if not forgotten and self.dice.random() < 0.2:
            node = self._some()
            node.disks += 1
            self._reborn(node, _blank(), Disk())
            for other in self.nodes.values():
                other.replica.unanswered(node.name)

    def _save(self) -> None:
        """A checkpoint, and some of the log dropped; only when the disk is idle, as in a queue."""
        node = self._some()
        log = node.replica.log
        if node.writing or node.replica.applicable_index <= log.base_index:
            return
        index = self.dice.randint(log.base_index, node.replica.applicable_index)
        found = Found()
        term = log.term_at(index)
        assert term is not None
        found.base_index, found.base_term, found.term = index, term, node.replica.term
        found.commit_index, found.entries = node.replica.commit_index, list(log.after(index))
        found.newcomer = node.replica.newcomer
        node.disk.saved, node.disk.writes = found, []
        log.drop(index)

    def _deliver(self) -> None:
        if self.bag:
            self.bag.pop(self.dice.randrange(len(self.bag)))[0]()

    def _drop(self) -> None:
        if self.bag:
            self.bag.pop(self.dice.randrange(len(self.bag)))[1]()

    def _repeat(self) -> None:
        if self.bag:
            self.bag.append((self.dice.choice(self.bag)[0], lambda: None))

    def _send(self) -> None:
        self._send_of(self._some())

    def _send_of(self, node: Node) -> None:
        replica = node.replica
        if replica.role is Role.RECOVERING:
            self._recover(node)
        for peer in replica.peers:
            if replica.lacks(peer):
                self._install(node, peer)
            elif (request := replica.next_for(peer, ping=self.dice.random() < 0.3)) is not None:
                self._request(node, peer, request)

    # -- requests -------------------------------------------------------------------------------

    def _recover(self, node: Node) -> None:
        replica, term = node.replica, node.replica.term
        donor = replica.donor()
        if donor == node.name:
            replica.begin()
        elif donor is not None:
            first = max(node.fetched, replica.commit_index) + 1
            if self.nodes[donor].replica.log.base_index >= first:
                self._fetch_state(node, donor)
            else:
                self._request(node, donor, Fetch(term, first))
        else:
            for peer in replica.peers:
                if not replica.has_answered(peer):
                    self._request(node, peer, Recover(term))

    def _request(self, node: Node, to: str, request: Append | Fetch | Recover) -> None:
        sender, life = node.name, node.life
        disks = self.nodes[to].disks

        def back(reply: Appended | Fetched | Recovered) -> None:
            if self.nodes[sender].life == life:
                self._answered(self.nodes[sender], to, request, reply)

        answered = False

        def once(reply: Appended | Fetched | Recovered) -> None:
            nonlocal answered
            if not answered and self.nodes[to].disks != disks:
                lose()  # the connection went with the one that had it
            elif not answered:
                answered = True
                back(reply)

        def lose() -> None:
            nonlocal answered
            if not answered and isinstance(request, Append) and self.nodes[sender].life == life:
                answered = True
                self.nodes[sender].replica.lost(to, request)

        def there() -> None:
            if (sender in self.apart) != (to in self.apart) or self.nodes[to].disks != disks:
                lose()
                return
            target = self.nodes[to]
            replica, reply = target.replica, None
            if isinstance(request, Append):
                reply = replica.append(sender, request)
            elif isinstance(request, Fetch):
                reply = replica.fetch(sender, request)
            else:
                reply = replica.recover(sender, request)
            answer = lambda: self.bag.append((lambda: once(reply), lose))  # noqa: E731
            if self.hasty:
                answer()
            else:
                target.replies.append((replica.write, answer))

        self.bag.append((there, lose))

    def _answered(
        self,
        node: Node,
        peer: str,
        request: Append | Fetch | Recover,
        reply: Appended | Fetched | Recovered,
    ) -> None:
        if isinstance(request, Append):
            assert isinstance(reply, Appended)
            node.replica.confirmed(peer, request, reply)
        elif isinstance(request, Fetch):
            assert isinstance(reply, Fetched)
            first = max(node.fetched, node.replica.commit_index) + 1
            if request.first_index == first and request.term == node.replica.term:
                node.replica.adopt(request.term, reply)
                node.fetched = max(node.fetched, *(one.index for one in reply.entries), 0)
            if not reply.granted:
                node.replica.unanswered(peer)
        else:
            assert isinstance(reply, Recovered)
            node.replica.answered(peer, request.term, reply)

    def _fetch_state(self, node: Node, donor: str) -> None:
        """In one step: parts and their loss are the shell's."""
        giver = self.nodes[donor].replica
        if not self.apart & {donor, node.name} and giver.serves(node.name, node.replica.term):
            self._replace(node, giver)
        else:
            node.replica.unanswered(donor)

    def _install(self, node: Node, peer: str) -> None:
        replica, target = node.replica, self.nodes[peer]
        index = 0
        replica.installing(peer)
        if not self.apart & {peer, node.name} and target.replica.accepts(node.name, replica.term):
            self._settle(target)
            index = self._replace(target, replica)
        replica.installed(peer, replica.term, index)

    def _replace(self, node: Node, giver: Replica) -> int:
        index = giver.applicable_index
        term = giver.log.term_at(index)
        assert term is not None
        self._settle(node)
        self._write_all(node)
        if node.replica.install(index, term):
            found = Found()
            found.base_index, found.base_term, found.commit_index = index, term, index
            found.term, found.entries = node.replica.term, list(node.replica.log.after(index))
            found.newcomer = node.replica.newcomer
            node.disk.saved, node.disk.writes = found, []
            node.seen = max(node.seen, index)
        return index

    # -- the judge ------------------------------------------------------------------------------

    def _settle(self, node: Node) -> None:
        replica = node.replica
        first = replica.write - len(writes := replica.take_writes()) + 1
        node.writing += [(first + number, write) for number, write in enumerate(writes)]
        done = replica.write - len(node.writing)
        while node.replies and node.replies[0][0] <= done:
            node.replies.pop(0)[1]()
        for index in range(node.seen + 1, replica.commit_index + 1):
            if index > replica.log.base_index:
                entry = replica.log.at(index)
                if self.committed.setdefault(index, entry) != entry:
                    raise Broken(f"{node.name} has {entry} for {self.committed[index]}")
            node.seen = index
        if replica.ready and replica.commit_index < max(self.committed, default=0):
            behind = [i for i in self.committed if i > replica.log.last_index]
            if behind and replica.term == self.term:
                raise Broken(f"leader {node.name} lacks {behind}")

    def _replica(self, name: str, found: Found) -> Replica:
        return self.make(
            name,
            self.names,
            self.settings,
            found.log(),
            found.term,
            found.commit_index,
            found.newcomer,
        )


def _blank() -> Found:
    found = Found()
    found.newcomer = True
    return found


def _encode(write: DiskWrite) -> bytes:
    from hyperscale.ledger.records import store

    return store._encode(write)
