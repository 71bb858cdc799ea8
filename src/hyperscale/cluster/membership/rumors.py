"""Judging what is said about members, whoever says it.

First-hand words of the owner, gossip, a full-state exchange and our own probes all end here. The
precedence table decides whether news is news; this file decides what follows from it.
"""

from __future__ import annotations

from hyperscale.cluster.identity import JUMP_MAX, Node, NodeId
from hyperscale.cluster.membership import suspicion as suspicions
from hyperscale.cluster.membership.awareness import HealthEvent
from hyperscale.cluster.membership.effects import Change, Changed, Exchange, Heartbeat, Via
from hyperscale.cluster.membership.member import Member, State, supersedes
from hyperscale.cluster.membership.messages import (
    Alive,
    Dead,
    Entry,
    Left,
    Sender,
    Suspect,
    Update,
)
from hyperscale.cluster.membership.station import Station, Timer
from hyperscale.cluster.membership.suspicion import Suspicion


class Rumors:
    __slots__ = ("_station",)

    def __init__(self, station: Station) -> None:
        self._station = station

    # --- entrances ----------------------------------------------------------------------------

    def hear(self, update: Update) -> bool:
        """News that came by gossip; False when its subject is unknown even now, so that the same
        words may matter later."""
        if self._leaps(update.node_id, update.incarnation):
            return False
        if update.node_id == self._station.me.node_id:
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
        known = self._station.view.get(update.node_id) is not None
        return known or update.node_id == self._station.me.node_id

    def merge(self, entry: Entry, teller: NodeId) -> None:
        """A row of somebody's whole view. A death told this way may be old, so it only makes a
        suspect, and the node concerned gets its chance to refute."""
        node, state = entry.node, State(entry.state)
        if self._leaps(node.node_id, max(entry.incarnation, node.incarnation)):
            return
        if node.node_id == self._station.me.node_id:
            self.about_me(state, entry.incarnation, node if state is State.ALIVE else None)
            return
        if state is State.LEFT:
            self.left(node.node_id, entry.incarnation, Via.EXCHANGE)
            return
        if state is State.DEAD and self._dead_is_no_surprise(node.node_id):
            self.dead(node.node_id, entry.incarnation, teller, Via.EXCHANGE)
            return
        self.alive(node, Via.EXCHANGE)
        if state is not State.ALIVE:
            accusers = entry.accusers or (teller,)
            self.suspect(node.node_id, entry.incarnation, accusers, Via.EXCHANGE)

    def _dead_is_no_surprise(self, node_id: NodeId) -> bool:
        """It is not live to us, or has been suspect here for as long as refuting may take."""
        known = self._station.view.get(node_id)
        if known is None or not known.live:
            return True
        suspect_s = self._station.now - known.changed_at
        return known.state is State.SUSPECT and suspect_s >= self._waits()[0]

    def greet(self, sender: Sender) -> bool:
        """Somebody spoke to us first-hand; True when it was believed gone and lives again."""
        node = sender.node
        member = self._station.view.get(node.node_id)
        if member is not None and self._leaps(node.node_id, node.incarnation):
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

    def _leaps(self, node_id: NodeId, incarnation: int) -> bool:
        """Nobody lives that many lives between two words of it. Of one that is not known at all
        only its own word may be that high."""
        if incarnation <= JUMP_MAX:
            return False
        station = self._station
        member = station.view.get(node_id)
        if node_id == station.me.node_id:
            known = station.wanted_incarnation
        elif member is not None:
            known = member.incarnation
        else:
            known = station.tombstones.incarnation(node_id, station.now) or 0
        if incarnation <= known + JUMP_MAX:
            return False
        station.counts["jump_refused"] += 1
        return True

    # --- about ourselves ----------------------------------------------------------------------

    def about_me(self, state: State, incarnation: int, node: Node | None) -> None:
        """Only we may speak for ourselves: anything that contradicts us is outlived."""
        station = self._station
        mine = station.me.incarnation
        if incarnation < mine or incarnation < station.wanted_incarnation:
            return
        if station.leaving or self._leaps(station.me.node_id, incarnation):
            return
        if state is State.ALIVE:
            if node == station.me:
                return
            if node is not None and (node.udp, node.tcp) != (station.me.udp, station.me.tcp):
                station.counts["conflict"] += 1
                station.out.append(
                    Changed(Change.CONFLICT, node, state, incarnation, Via.GOSSIP, False)
                )
        elif incarnation == mine and state is not State.LEFT:
            station.counts["accused"] += 1
            station.awareness.note(station.now, HealthEvent.ACCUSED)
        station.exceed(incarnation)

    # --- alive --------------------------------------------------------------------------------

    def alive(self, node: Node, via: Via) -> Member | None:
        member = self._station.view.get(node.node_id)
        if member is None:
            return self._discover(node, via)
        if supersedes(State.ALIVE, node.incarnation, member.state, member.incarnation):
            self._renew(member, node, via)
        return member

    def _discover(self, node: Node, via: Via) -> Member | None:
        station = self._station
        ended = station.tombstones.incarnation(node.node_id, station.now)
        if ended is not None and node.incarnation <= ended:
            station.counts["refused_by_tombstone"] += 1
            return None
        if len(station.view) >= station.config.members_max:
            station.counts["refused_view_full"] += 1
            return None
        station.tombstones.remove(node.node_id)
        member = station.view.add(node, station.now)
        station.ring.add(node.node_id)
        self._await_confirmation(member)
        station.changed(Change.DISCOVERED, member, via)
        station.tell(Alive(node), join=True)
        return member

    def _renew(self, member: Member, node: Node, via: Via) -> None:
        station = self._station
        before, moved = member.state, member.node.udp != node.udp or member.node.tcp != node.tcp
        if member.suspicion is not None and member.suspicion.charged:
            station.awareness.note(station.now, HealthEvent.SUSPICION_REFUTED)
        self._drop_suspicion(member)
        station.deadlines.cancel((Timer.REAP, member.node_id))
        station.view.move(member, State.ALIVE, node.incarnation, station.now)
        member.node = node
        station.ring.add(node.node_id)
        if moved:
            member.confirmed = False
            station.changed(Change.MOVED, member, via)
        if before is State.SUSPECT:
            station.changed(Change.REFUTED, member, via)
        elif before is not State.ALIVE:
            station.changed(Change.REVIVED, member, via)
        if not member.confirmed and node.node_id not in station.confirmation:
            self._await_confirmation(member)
        station.tell(Alive(node))

    # --- suspect ------------------------------------------------------------------------------

    def suspect(
        self, node_id: NodeId, incarnation: int, accusers: tuple[NodeId, ...], via: Via
    ) -> None:
        station = self._station
        member = station.view.get(node_id)
        if member is None or not accusers or (via is Via.PROBE and not member.confirmed):
            return
        if member.state is State.SUSPECT and incarnation == member.incarnation:
            self._corroborate(member, accusers)
            return
        if not supersedes(State.SUSPECT, incarnation, member.state, member.incarnation):
            return
        self._drop_suspicion(member)
        station.view.move(member, State.SUSPECT, incarnation, station.now)
        station.deadlines.cancel((Timer.REAP, node_id))
        station.ring.add(node_id)
        if member.confirmed:
            self._start_suspicion(member, accusers)
        else:
            station.deadlines.set((Timer.SUSPICION, node_id), station.now + 2.0 * self._waits()[0])
        station.changed(Change.SUSPECTED, member, via)
        station.tell(Suspect(node_id, incarnation, tuple(sorted(accusers))))

    def _start_suspicion(self, member: Member, accusers: tuple[NodeId, ...]) -> None:
        station, config = self._station, self._station.config
        min_s, max_s = self._waits()
        # Neither the suspect nor the first accuser can confirm.
        expected = max(0, min(config.suspicion_confirmations, station.population - 2))
        member.suspicion = Suspicion(
            station.now, member.incarnation, accusers, expected, min_s, max_s
        )
        station.deadlines.set((Timer.SUSPICION, member.node_id), member.suspicion.deadline)

    def _waits(self) -> tuple[float, float]:
        """Shortest and longest wait for a suspicion that starts now."""
        station, config = self._station, self._station.config
        return suspicions.bounds(
            station.population,
            config.probe_interval_s,
            config.suspicion_mult,
            config.suspicion_max_ratio,
            config.suspicion_cap_s,
            station.awareness.factor,
        )

    def _corroborate(self, member: Member, accusers: tuple[NodeId, ...]) -> None:
        if member.suspicion is None:
            return
        fresh = [accuser for accuser in accusers if member.suspicion.confirm(accuser)]
        if fresh:
            station = self._station
            due = member.suspicion.deadline
            station.deadlines.set_earlier((Timer.SUSPICION, member.node_id), due)
            station.tell(Suspect(member.node_id, member.incarnation, station.accusers(member)))

    def suspicion_ran_out(self, node_id: NodeId) -> None:
        member = self._station.view.get(node_id)
        if member is None or member.state is not State.SUSPECT:
            return
        if member.suspicion is None:
            self._ask_about(member)
            return
        assert member.confirmed, "an unconfirmed peer is never called dead by us"
        assert member.suspicion.incarnation == member.incarnation
        self.dead(node_id, member.incarnation, self._station.me.node_id, Via.TIMEOUT)

    def _ask_about(self, member: Member) -> None:
        """Others suspected a node that we never heard; by now they know how it ended. It is not
        ours to say, so somebody is asked."""
        station = self._station
        again = station.now + station.config.confirmation_interval_s
        station.deadlines.set((Timer.SUSPICION, member.node_id), again)
        for other in station.partners((member.node_id,)):
            station.out.append(Exchange(other.node.tcp))

    def postpone_suspicions(self, seconds: float) -> None:
        """We slept; the time does not count against anybody."""
        for node_id in list(self._station.view.suspects):
            member = self._station.view.get(node_id)
            if member is not None and member.suspicion is not None:
                member.suspicion.postpone(seconds)
                self._station.deadlines.set((Timer.SUSPICION, node_id), member.suspicion.deadline)

    # --- gone ---------------------------------------------------------------------------------

    def dead(self, node_id: NodeId, incarnation: int, declared_by: NodeId, via: Via) -> None:
        if self._end(node_id, State.DEAD, incarnation, via):
            self._station.tell(Dead(node_id, incarnation, declared_by))
            if via is Via.GOSSIP:
                self._station.counts["gossip_informed_deaths"] += 1

    def left(self, node_id: NodeId, incarnation: int, via: Via) -> None:
        if self._end(node_id, State.LEFT, incarnation, via):
            self._station.tell(Left(node_id, incarnation))

    def _end(self, node_id: NodeId, state: State, incarnation: int, via: Via) -> bool:
        station, config = self._station, self._station.config
        member = station.view.get(node_id)
        if member is None:
            until = station.now + config.tombstone_s
            station.tombstones.put(node_id, incarnation, until)
            return False
        if not supersedes(state, incarnation, member.state, member.incarnation):
            return False
        was_live = member.live
        self._drop_suspicion(member)
        station.view.move(member, state, incarnation, station.now)
        station.ring.remove(node_id)
        station.confirmation.forget(node_id)
        station.deadlines.cancel((Timer.UNCONFIRMED, node_id))
        station.deadlines.set((Timer.REAP, node_id), station.now + config.dead_reaped_s)
        if was_live:
            station.changed(Change.DIED if state is State.DEAD else Change.LEFT, member, via)
        return True

    def reap(self, node_id: NodeId) -> None:
        member = self._station.view.get(node_id)
        if member is not None:
            assert not member.live
            self.forget(member, self._station.config.tombstone_s, Change.REAPED)

    def forget(self, member: Member, tombstone_s: float, change: Change) -> None:
        station, node_id = self._station, member.node_id
        station.tombstones.put(node_id, member.incarnation, station.now + tombstone_s)
        self._drop_suspicion(member)
        station.view.remove(member)
        station.seen.clear()
        station.ring.remove(node_id)
        station.news.forget(node_id)
        station.vivaldi.forget(node_id)
        station.confirmation.forget(node_id)
        station.deadlines.cancel((Timer.UNCONFIRMED, node_id))
        station.changed(change, member, Via.CLEANUP)

    # --- first-hand ---------------------------------------------------------------------------

    def _await_confirmation(self, member: Member) -> None:
        station = self._station
        due = station.confirmation.discovered(station.now, member.node_id, member.node.role)
        station.deadlines.set((Timer.UNCONFIRMED, member.node_id), due)

    def confirm(self, node_id: NodeId) -> None:
        """Proof of life by another channel, such as a registration or a relayed answer."""
        member = self._station.view.get(node_id)
        if member is not None and member.live and not member.confirmed:
            self._confirm(member)

    def _confirm(self, member: Member) -> None:
        station = self._station
        member.confirmed = True
        station.confirmation.confirmed(member.node_id)
        station.deadlines.cancel((Timer.UNCONFIRMED, member.node_id))
        station.changed(Change.JOINED, member, Via.OWNER)
        if member.state is State.SUSPECT and member.suspicion is None:
            self._start_suspicion(member, (station.me.node_id,))

    def _heartbeat(self, member: Member, sender: Sender) -> None:
        life, version = sender.node.incarnation, sender.heartbeat_version
        newest = member.heartbeat_life
        if life > newest or (life == newest and version > member.heartbeat_version):
            member.heartbeat_life, member.heartbeat_version = life, version
            self._station.out.append(Heartbeat(sender.node, version, sender.heartbeat))

    def _drop_suspicion(self, member: Member) -> None:
        member.suspicion = None
        self._station.deadlines.cancel((Timer.SUSPICION, member.node_id))


_STATE: dict[type[Update], State] = {
    Alive: State.ALIVE,
    Suspect: State.SUSPECT,
    Dead: State.DEAD,
    Left: State.LEFT,
}
