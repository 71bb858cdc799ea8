"""Judging what is said about members, whoever says it.

First-hand words of the owner, gossip, a full-state exchange and our own probes all end here. The
precedence table decides whether news is news; this file decides what follows from it.
"""

from __future__ import annotations

from hyperscale.cluster.identity import JUMP_MAX, Node, NodeId
from hyperscale.cluster.membership import suspicion as suspicions
from hyperscale.cluster.membership.awareness import HealthEvent
from hyperscale.cluster.membership.effects import Change, Changed, Exchange, Heartbeat, Via
from hyperscale.cluster.membership.member import Member, MemberState, supersedes
from hyperscale.cluster.membership.messages import (
    Alive,
    Dead,
    Left,
    Sender,
    Suspect,
    Update,
    ViewEntry,
)
from hyperscale.cluster.membership.state import SharedState, Timer
from hyperscale.cluster.membership.suspicion import Suspicion

ASK_WHO_S = 1.0


class Updates:
    __slots__ = ("_asked_who_at", "_shared")

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._asked_who_at = -ASK_WHO_S

    # --- entrances ----------------------------------------------------------------------------

    def hear(self, update: Update) -> bool:
        """News that came by gossip; False when its subject is unknown even now, so that the same
        words may matter later."""
        if self._leaps(update.node_id, update.incarnation):
            return False
        if update.node_id == self._shared.me.node_id:
            node = update.node if isinstance(update, Alive) else None
            self.about_me(_STATE[type(update)], update.incarnation, node)
        elif isinstance(update, Alive):
            self.alive(update.node, Via.GOSSIP)
        elif isinstance(update, Suspect):
            self.suspect(update.node_id, update.incarnation, update.accusers, Via.GOSSIP)
        elif isinstance(update, Dead):
            self.dead(update.node_id, update.incarnation, update.declared_by, Via.GOSSIP)
        else:
            self.left(update.node_id, update.incarnation, Via.GOSSIP)
        known = self._shared.view.get(update.node_id) is not None
        return known or update.node_id == self._shared.me.node_id

    def merge(self, entry: ViewEntry, teller: NodeId) -> None:
        """A row of somebody's whole view. A death told this way may be old, so it only makes a
        suspect, and the node concerned gets its chance to refute."""
        node, state = entry.node, MemberState(entry.state)
        if self._leaps(node.node_id, max(entry.incarnation, node.incarnation)):
            return
        if node.node_id == self._shared.me.node_id:
            self.about_me(state, entry.incarnation, node if state is MemberState.ALIVE else None)
            return
        if state is MemberState.LEFT:
            self.left(node.node_id, entry.incarnation, Via.EXCHANGE)
            return
        if state is MemberState.DEAD and self._dead_is_no_surprise(node.node_id):
            self.dead(node.node_id, entry.incarnation, teller, Via.EXCHANGE)
            return
        self.alive(node, Via.EXCHANGE)
        if state is not MemberState.ALIVE:
            accusers = entry.accusers or (teller,)
            self.suspect(node.node_id, entry.incarnation, accusers, Via.EXCHANGE)

    def _dead_is_no_surprise(self, node_id: NodeId) -> bool:
        """It is not live to us, or has been suspect here for as long as refuting may take."""
        known = self._shared.view.get(node_id)
        if known is None or not known.live:
            return True
        suspect_s = self._shared.now - known.changed_at
        return known.state is MemberState.SUSPECT and suspect_s >= self._waits()[0]

    def greet(self, sender: Sender, *, proven: bool = False) -> bool:
        """Somebody spoke to us first-hand; True when it was believed gone and lives again.
        `proven`: by its certificate. Whoever has the secret seals datagrams in every name, so a
        far life of somebody unknown is asked for over a connection."""
        node = sender.node
        member = self._shared.view.get(node.node_id)
        if (member is not None or not proven) and self._leaps(node.node_id, node.incarnation):
            if member is None:
                self._ask_who(node)
            return False
        revived = False
        if member is None or member.incarnation < node.incarnation:
            was_gone = member is not None and not member.live
            member = self.alive(node, Via.OWNER)
            if member is None:
                return False  # a tombstone stands
            revived = was_gone and member.live
        if sender.coordinate is not None:
            member.coordinate = sender.coordinate
        if not member.confirmed and member.live and member.node.udp == node.udp:
            self._confirm(member)
        if sender.heartbeat_version > 0:
            self._heartbeat(member, sender)
        return revived

    def _ask_who(self, node: Node) -> None:
        """Once a second at most: strangers must not make us call whom they like."""
        shared = self._shared
        if shared.now >= self._asked_who_at + ASK_WHO_S:
            self._asked_who_at = shared.now
            shared.out.append(Exchange(node.tcp))

    def _leaps(self, node_id: NodeId, incarnation: int) -> bool:
        """Nobody lives that many lives between two words of it. Of one that is not known at all
        only its own word may be that high, if it is proven."""
        if incarnation <= JUMP_MAX:
            return False
        shared = self._shared
        member = shared.view.get(node_id)
        if node_id == shared.me.node_id:
            known = shared.wanted_incarnation
        elif member is not None:
            known = member.incarnation
        else:
            known = shared.tombstones.incarnation(node_id, shared.now) or 0
        if incarnation <= known + JUMP_MAX:
            return False
        shared.counts["jump_refused"] += 1
        return True

    # --- about ourselves ----------------------------------------------------------------------

    def about_me(self, state: MemberState, incarnation: int, node: Node | None) -> None:
        """Only we may speak for ourselves: anything that contradicts us is outlived."""
        shared = self._shared
        mine = shared.me.incarnation
        if incarnation < mine or incarnation < shared.wanted_incarnation:
            return
        if shared.leaving or self._leaps(shared.me.node_id, incarnation):
            return
        if state is MemberState.ALIVE:
            if node == shared.me:
                return
            if node is not None and (node.udp, node.tcp) != (shared.me.udp, shared.me.tcp):
                shared.counts["conflict"] += 1
                shared.out.append(
                    Changed(Change.CONFLICT, node, state, incarnation, Via.GOSSIP, False)
                )
        elif incarnation == mine and state is not MemberState.LEFT:
            shared.counts["accused"] += 1
            shared.awareness.note(shared.now, HealthEvent.ACCUSED)
        shared.exceed(incarnation)

    # --- alive --------------------------------------------------------------------------------

    def alive(self, node: Node, via: Via) -> Member | None:
        member = self._shared.view.get(node.node_id)
        if member is None:
            return self._discover(node, via)
        if supersedes(MemberState.ALIVE, node.incarnation, member.state, member.incarnation):
            self._renew(member, node, via)
        return member

    def _discover(self, node: Node, via: Via) -> Member | None:
        shared = self._shared
        ended = shared.tombstones.incarnation(node.node_id, shared.now)
        if ended is not None and node.incarnation <= ended:
            shared.counts["refused_by_tombstone"] += 1
            return None
        if len(shared.view) >= shared.config.members_max:
            shared.counts["refused_view_full"] += 1
            return None
        shared.tombstones.remove(node.node_id)
        member = shared.view.add(node, shared.now)
        shared.ring.add(node.node_id)
        self._await_confirmation(member)
        shared.changed(Change.DISCOVERED, member, via)
        shared.tell(Alive(node), join=True)
        return member

    def _renew(self, member: Member, node: Node, via: Via) -> None:
        shared = self._shared
        before, moved = member.state, member.node.udp != node.udp or member.node.tcp != node.tcp
        if member.suspicion is not None and member.suspicion.charged:
            shared.awareness.note(shared.now, HealthEvent.SUSPICION_REFUTED)
        self._drop_suspicion(member)
        shared.deadlines.cancel((Timer.REAP, member.node_id))
        shared.view.move(member, MemberState.ALIVE, node.incarnation, shared.now)
        member.node = node
        shared.ring.add(node.node_id)
        if moved:
            member.confirmed = False
            shared.changed(Change.MOVED, member, via)
        if before is MemberState.SUSPECT:
            shared.changed(Change.REFUTED, member, via)
        elif before is not MemberState.ALIVE:
            shared.changed(Change.REVIVED, member, via)
        if not member.confirmed and node.node_id not in shared.confirmation:
            self._await_confirmation(member)
        shared.tell(Alive(node))

    # --- suspect ------------------------------------------------------------------------------

    def suspect(
        self, node_id: NodeId, incarnation: int, accusers: tuple[NodeId, ...], via: Via
    ) -> None:
        shared = self._shared
        member = shared.view.get(node_id)
        if member is None or not accusers or (via is Via.PROBE and not member.confirmed):
            return
        if member.state is MemberState.SUSPECT and incarnation == member.incarnation:
            self._corroborate(member, accusers)
            return
        if not supersedes(MemberState.SUSPECT, incarnation, member.state, member.incarnation):
            return
        self._drop_suspicion(member)
        shared.view.move(member, MemberState.SUSPECT, incarnation, shared.now)
        shared.deadlines.cancel((Timer.REAP, node_id))
        shared.ring.add(node_id)
        if member.confirmed:
            self._start_suspicion(member, accusers)
        else:
            shared.deadlines.set((Timer.SUSPICION, node_id), shared.now + 2.0 * self._waits()[0])
        shared.changed(Change.SUSPECTED, member, via)
        shared.tell(Suspect(node_id, incarnation, tuple(sorted(accusers))))

    def _start_suspicion(self, member: Member, accusers: tuple[NodeId, ...]) -> None:
        shared, config = self._shared, self._shared.config
        min_s, max_s = self._waits()
        # Neither the suspect nor the first accuser can confirm.
        expected = max(0, min(config.suspicion_confirmations, shared.population - 2))
        member.suspicion = Suspicion(
            shared.now, member.incarnation, accusers, expected, min_s, max_s
        )
        shared.deadlines.set((Timer.SUSPICION, member.node_id), member.suspicion.deadline)

    def _waits(self) -> tuple[float, float]:
        """Shortest and longest wait for a suspicion that starts now."""
        shared, config = self._shared, self._shared.config
        return suspicions.bounds(
            shared.population,
            config.probe_interval_s,
            config.suspicion_mult,
            config.suspicion_max_ratio,
            config.suspicion_cap_s,
            shared.awareness.factor,
        )

    def _corroborate(self, member: Member, accusers: tuple[NodeId, ...]) -> None:
        if member.suspicion is None:
            return
        fresh = [accuser for accuser in accusers if member.suspicion.confirm(accuser)]
        if fresh:
            shared = self._shared
            due = member.suspicion.deadline
            shared.deadlines.set_earlier((Timer.SUSPICION, member.node_id), due)
            shared.tell(Suspect(member.node_id, member.incarnation, shared.accusers(member)))

    def suspicion_ran_out(self, node_id: NodeId) -> None:
        member = self._shared.view.get(node_id)
        if member is None or member.state is not MemberState.SUSPECT:
            return
        if member.suspicion is None:
            self._ask_about(member)
            return
        assert member.confirmed, "an unconfirmed peer is never called dead by us"
        assert member.suspicion.incarnation == member.incarnation
        self.dead(node_id, member.incarnation, self._shared.me.node_id, Via.TIMEOUT)

    def _ask_about(self, member: Member) -> None:
        """Others suspected a node that we never heard; by now they know how it ended. It is not
        ours to say, so somebody is asked."""
        shared = self._shared
        again = shared.now + shared.config.confirmation_interval_s
        shared.deadlines.set((Timer.SUSPICION, member.node_id), again)
        for other in shared.partners((member.node_id,)):
            shared.out.append(Exchange(other.node.tcp))

    def postpone_suspicions(self, seconds: float) -> None:
        """We slept; the time does not count against anybody."""
        for node_id in list(self._shared.view.suspects):
            member = self._shared.view.get(node_id)
            if member is not None and member.suspicion is not None:
                member.suspicion.postpone(seconds)
                self._shared.deadlines.set((Timer.SUSPICION, node_id), member.suspicion.deadline)

    # --- gone ---------------------------------------------------------------------------------

    def dead(self, node_id: NodeId, incarnation: int, declared_by: NodeId, via: Via) -> None:
        if self._end(node_id, MemberState.DEAD, incarnation, via):
            self._shared.tell(Dead(node_id, incarnation, declared_by))
            if via is Via.GOSSIP:
                self._shared.counts["gossip_informed_deaths"] += 1

    def left(self, node_id: NodeId, incarnation: int, via: Via) -> None:
        if self._end(node_id, MemberState.LEFT, incarnation, via):
            self._shared.tell(Left(node_id, incarnation))

    def _end(self, node_id: NodeId, state: MemberState, incarnation: int, via: Via) -> bool:
        shared, config = self._shared, self._shared.config
        member = shared.view.get(node_id)
        if member is None:
            until = shared.now + config.tombstone_s
            shared.tombstones.put(node_id, incarnation, until)
            return False
        if not supersedes(state, incarnation, member.state, member.incarnation):
            return False
        was_live = member.live
        self._drop_suspicion(member)
        shared.view.move(member, state, incarnation, shared.now)
        shared.ring.remove(node_id)
        shared.confirmation.forget(node_id)
        shared.deadlines.cancel((Timer.UNCONFIRMED, node_id))
        shared.deadlines.set((Timer.REAP, node_id), shared.now + config.dead_reaped_s)
        if was_live:
            shared.changed(Change.DIED if state is MemberState.DEAD else Change.LEFT, member, via)
        return True

    def reap(self, node_id: NodeId) -> None:
        member = self._shared.view.get(node_id)
        if member is not None:
            assert not member.live
            self.forget(member, self._shared.config.tombstone_s, Change.REAPED)

    def forget(self, member: Member, tombstone_s: float, change: Change) -> None:
        shared, node_id = self._shared, member.node_id
        shared.tombstones.put(node_id, member.incarnation, shared.now + tombstone_s)
        self._drop_suspicion(member)
        shared.view.remove(member)
        shared.seen.clear()
        shared.ring.remove(node_id)
        shared.news.forget(node_id)
        shared.vivaldi.forget(node_id)
        shared.confirmation.forget(node_id)
        shared.deadlines.cancel((Timer.UNCONFIRMED, node_id))
        shared.changed(change, member, Via.CLEANUP)

    # --- first-hand ---------------------------------------------------------------------------

    def _await_confirmation(self, member: Member) -> None:
        shared = self._shared
        due = shared.confirmation.discovered(shared.now, member.node_id, member.node.role)
        shared.deadlines.set((Timer.UNCONFIRMED, member.node_id), due)

    def confirm(self, node_id: NodeId) -> None:
        """Proof of life by another channel, such as a registration or a relayed answer."""
        member = self._shared.view.get(node_id)
        if member is not None and member.live and not member.confirmed:
            self._confirm(member)

    def _confirm(self, member: Member) -> None:
        shared = self._shared
        member.confirmed = True
        shared.confirmation.confirmed(member.node_id)
        shared.deadlines.cancel((Timer.UNCONFIRMED, member.node_id))
        shared.changed(Change.JOINED, member, Via.OWNER)
        if member.state is MemberState.SUSPECT and member.suspicion is None:
            self._start_suspicion(member, (shared.me.node_id,))

    def _heartbeat(self, member: Member, sender: Sender) -> None:
        life, version = sender.node.incarnation, sender.heartbeat_version
        newest = member.heartbeat_life
        if life > newest or (life == newest and version > member.heartbeat_version):
            member.heartbeat_life, member.heartbeat_version = life, version
            self._shared.out.append(Heartbeat(sender.node, version, sender.heartbeat))

    def _drop_suspicion(self, member: Member) -> None:
        member.suspicion = None
        self._shared.deadlines.cancel((Timer.SUSPICION, member.node_id))


_STATE: dict[type[Update], MemberState] = {
    Alive: MemberState.ALIVE,
    Suspect: MemberState.SUSPECT,
    Dead: MemberState.DEAD,
    Left: MemberState.LEFT,
}
