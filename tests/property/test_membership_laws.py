"""Laws of the membership core under random events."""

from __future__ import annotations

import contextlib
import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.coordinates import Coordinate, Vivaldi, VivaldiConfig, rtt_upper_bound_s
from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import Membership, MembershipConfig, Refused, Send
from hyperscale.cluster.membership.deadlines import Deadlines
from hyperscale.cluster.membership.dissemination import Dissemination
from hyperscale.cluster.membership.member import MemberState, supersedes
from hyperscale.cluster.membership.messages import (
    BUCKETS,
    Ack,
    Alive,
    Dead,
    Gossip,
    Left,
    Ping,
    PingRequest,
    Sender,
    Summary,
    Suspect,
    Update,
    decode_datagram,
    decode_exchange,
    encode,
    header,
    size_of,
)
from hyperscale.cluster.membership.suspicion import Suspicion, wait

HEAD = header("default")
names = st.sampled_from(["me", "a", "b", "c", "d"])
incarnations = st.integers(0, 6)
beliefs = st.tuples(st.sampled_from(list(MemberState)), incarnations)


def merge(one: tuple[MemberState, int], two: tuple[MemberState, int]) -> tuple[MemberState, int]:
    return two if supersedes(two[0], two[1], one[0], one[1]) else one


@given(beliefs, beliefs, beliefs)
def test_merging_beliefs_is_a_semilattice(
    a: tuple[MemberState, int], b: tuple[MemberState, int], c: tuple[MemberState, int]
) -> None:
    assert merge(a, a) == a
    assert merge(a, b) == merge(b, a)
    assert merge(a, merge(b, c)) == merge(merge(a, b), c)
    assert not (supersedes(*a, *b) and supersedes(*b, *a))


def node(name: str, incarnation: int) -> Node:
    return Node(name, incarnation, "manager", "dc1", (name, 1), (name, 2))


updates = st.one_of(
    st.builds(lambda n, i: Alive(node(n, i)), names, incarnations),
    st.builds(
        lambda n, i, a: Suspect(n, i, tuple(a)),
        names,
        incarnations,
        st.lists(names, min_size=1, max_size=4),
    ),
    st.builds(Dead, names, incarnations, names),
    st.builds(Left, names, incarnations),
)
others = st.sampled_from(["a", "b", "c", "d"])
senders = st.builds(lambda n, i: Sender(node(n, i)), others, incarnations)
gossip = st.lists(updates, max_size=6)
datagrams = st.one_of(
    st.builds(Gossip, senders, gossip),
    st.builds(Ping, senders, st.integers(0, 9), names, gossip),
    st.builds(Ack, senders, st.integers(0, 9), gossip),
    st.builds(
        lambda s, q, t, u: PingRequest(s, q, t, (t, 1), 0.5, u),
        senders,
        st.integers(0, 9),
        others,
        gossip,
    ),
)
steps = st.lists(
    st.one_of(
        datagrams.map(lambda message: ("receive", message)),
        st.floats(0.0, 40.0).map(lambda seconds: ("wait", seconds)),
        st.sampled_from(["leave", "summary"]).map(lambda what: (what, None)),
    ),
    max_size=40,
)


def fresh() -> Membership:
    core = Membership(node("me", 0), MembershipConfig(), random.Random(1), 0)
    core.start(0.0)
    core.persisted(0.0, 64)
    return core


@settings(max_examples=150, deadline=None)
@given(steps)
def test_any_history_keeps_the_invariants(history: list[tuple[str, object]]) -> None:
    core, now, mine, rows = fresh(), 0.0, 1, {}
    for what, argument in history:
        effects = []
        if what == "receive":
            effects = core.receive(now, encode(HEAD, argument))  # type: ignore[arg-type]
        elif what == "wait":
            now += argument  # type: ignore[operator]
            effects = core.tick(now)
        elif what == "leave":
            effects = core.leave(now)
        else:
            decode_exchange(HEAD, core.summary(now))
        for effect in effects:
            if isinstance(effect, Send):
                assert len(effect.data) <= 1_200 - 112
                decode_datagram(HEAD, effect.data)
        assert core.me.incarnation >= mine, "our own incarnation never goes back"
        assert core.me.incarnation <= 7, "and only exceeds what was said of us"
        mine = core.me.incarnation
        for member in core.members():
            before = rows.get(member.node_id)
            after = (member.state, member.incarnation)
            assert before is None or before == after or supersedes(*after, *before)
            rows[member.node_id] = after
        for gone in set(rows) - {member.node_id for member in core.members()}:
            del rows[gone]
        assert core.member("me") is None
        assert core.deadline >= now or what != "wait"


@settings(max_examples=60, deadline=None)
@given(st.lists(updates, max_size=12), st.randoms(use_true_random=False))
def test_gossip_in_any_order_ends_in_one_view(news: list[object], rng: random.Random) -> None:
    """Once everybody is known, order and repeats do not matter."""

    def view(order: list[object]) -> dict[str, tuple[MemberState, int]]:
        core = fresh()
        for update in [Alive(node(n, 0)) for n in "abcd"] + order:
            message = Gossip(Sender(node("a", 0)), [update])  # type: ignore[list-item]
            core.receive(0.0, encode(HEAD, message))
        return {m.node_id: (m.state, m.incarnation) for m in core.members()}

    shuffled = news * 2
    rng.shuffle(shuffled)
    assert view(news) == view(shuffled)


@given(st.binary(max_size=200))
def test_noise_is_refused_by_type(noise: bytes) -> None:
    for data in (noise, HEAD + noise):
        for decode in (decode_datagram, decode_exchange):
            with contextlib.suppress(Refused):
                decode(HEAD, data)


@settings(max_examples=200)
@given(datagrams, st.data())
def test_damaged_datagrams_are_refused_or_understood(message: object, data: st.DataObject) -> None:
    good = bytearray(encode(HEAD, message))  # type: ignore[arg-type]
    good[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(Refused):
        fresh().receive(0.0, bytes(good))


@given(datagrams)
def test_round_trip(message: msgspec.Struct) -> None:
    again = decode_datagram(HEAD, encode(HEAD, message))  # type: ignore[arg-type]
    assert encode(HEAD, again) == encode(HEAD, message)  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 60), st.booleans())),
    st.integers(0, 200),
)
def test_packing_never_exceeds_the_room(news: list[tuple[str, int, bool]], room: int) -> None:
    queue = Dissemination(5)
    for subject, size, join in news:
        queue.add(Dead(subject, 1, "x" * size), join=join)
        assert len(queue) <= 5
    while len(queue):
        taken = queue.take(room, 3)
        assert sum(map(size_of, taken)) <= room
        if not taken:
            break


@given(st.lists(st.sampled_from("abcdef")), st.integers(0, 5), st.floats(0.1, 10), st.floats(1, 6))
def test_confirmations_only_bring_the_deadline_forward(
    accusers: list[str], expected: int, min_s: float, ratio: float
) -> None:
    doubt = Suspicion(0.0, 1, ("a",), expected, min_s, min_s * ratio)
    for accuser in accusers:
        before = doubt.deadline
        doubt.confirm(accuser)
        assert min_s <= doubt.deadline <= before
    assert wait(expected, expected, min_s, min_s * ratio) == min_s


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 100), st.booleans())))
def test_deadlines_behave_like_a_sorted_table(events: list[tuple[str, float, bool]]) -> None:
    deadlines: Deadlines[str] = Deadlines()
    model: dict[str, float] = {}
    for key, due, keep in events:
        if keep:
            deadlines.set(key, due)
            model[key] = due
        else:
            deadlines.cancel(key)
            model.pop(key, None)
        assert deadlines.next == min(model.values(), default=float("inf"))
    fired = []
    while (key := deadlines.pop(1e9)) is not None:  # type: ignore[assignment]
        fired.append(model.pop(key))
    assert fired == sorted(fired)
    assert not model


finite = st.floats(-1e3, 1e3)
coordinates = st.builds(
    Coordinate,
    st.tuples(finite, finite, finite, finite),
    st.floats(0, 10),
    st.floats(0, 1.5),
    st.floats(0, 10),
    st.integers(0, 100),
)


@given(st.lists(st.tuples(coordinates, st.floats()), max_size=20))
def test_coordinates_stay_finite(samples: list[tuple[Coordinate, float]]) -> None:
    config = VivaldiConfig()
    member = Vivaldi(config, random.Random(1))
    for theirs, rtt_s in samples:
        member.observe("x", theirs, rtt_s)
        mine = member.coordinate
        assert all(abs(p) < 1e6 for p in mine.position)
        assert mine.height >= config.height_min_s
        assert 0.0 <= mine.error <= config.error_max
        assert config.rtt_min_s <= rtt_upper_bound_s(mine, theirs, config) <= config.rtt_upper_s


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 512), st.integers(1, 8))
def test_the_longest_names_still_fit(heartbeat: int, accusers: int) -> None:
    label, host = "r" * 32, "h" * 64
    far = 2**60
    me = Node("m" * 64, 0, label, label, (host, 65_535), (host, 65_535))
    core = Membership(me, MembershipConfig(), random.Random(1), far)
    core.start(0.0)
    core.persisted(0.0, far + 64)
    core.set_heartbeat(1, b"b" * heartbeat)
    other = Node("o" * 64, far, label, label, (host, 65_535), (host, 65_535))
    news: list[Update] = [
        Alive(other),
        Suspect("o" * 64, far, tuple(f"{i}" * 64 for i in range(accusers))),
    ]
    core.exchanged(0.0, encode(HEAD, Summary(Sender(other), (0,) * BUCKETS)))
    sent = core.receive(0.0, encode(HEAD, Ping(Sender(other), 1, me.node_id, news)))
    for second in range(20):
        sent += core.tick(float(second))
    datagrams = [effect.data for effect in sent if isinstance(effect, Send)]
    assert len(datagrams) > 5
    assert max(map(len, datagrams)) <= 1_200 - 112
    assert core.counts["oversize_dropped"] == 0
