"""Discovery under any order of events, and the SRV decoder under any bytes."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.discovery import (
    Ask,
    Discovery,
    DiscoverySettings,
    DiscoveryState,
    DnsName,
    Effect,
    FormCluster,
    Found,
    Probe,
    ProbeAnswer,
    Resolve,
    SetTimer,
    StopAsking,
    StopResolving,
)
from hyperscale.cluster.discovery.discovery import SEARCHING, TRANSITIONS
from hyperscale.cluster.discovery.srv import LookupFailed, Services, decode_answer, encode_query
from hyperscale.cluster.identity import Node

PLACES = [(name, 9_000) for name in "abcdef"]
NAMES = (DnsName("x"), DnsName("y", service=True))


def speaker(name: str, role: str = "manager", cluster: str = "c") -> Probe:
    return Probe(cluster, "e", Node(name, 1, role, "dc", (name, 1), (name, 2)))


speakers = st.builds(
    speaker,
    st.sampled_from("abcdefm"),
    st.sampled_from(["manager", "worker"]),
    st.sampled_from(["c", "c", "c", "other"]),
)
events = st.one_of(
    st.tuples(st.just("answer"), st.integers(0, 9), speakers),
    st.tuples(st.just("fail"), st.integers(0, 9)),
    st.tuples(st.just("resolve"), st.integers(0, 9), st.lists(st.sampled_from(PLACES))),
    st.tuples(st.just("no name"), st.integers(0, 9)),
    st.tuples(st.just("probed"), speakers),
    st.tuples(st.just("members"), st.sets(st.sampled_from("abcdef"))),
    st.tuples(st.just("tick"), st.floats(0.0, 1.5)),
)


class Watch:
    """What the shell would hold, and what must be true of it."""

    def __init__(self, core: Discovery, config: DiscoverySettings) -> None:
        self.core = core
        self.config = config
        self.asking: list[tuple[str, int]] = []
        self.resolving: list[DnsName] = []
        self.timer: float | None = None
        self.formed = 0

    def carry(self, before: DiscoveryState, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Ask(address, _):
                    assert address not in self.asking
                    self.asking.append(address)
                case StopAsking(address):
                    self.asking.remove(address)
                case Resolve(name):
                    assert name not in self.resolving
                    self.resolving.append(name)
                case StopResolving(name):
                    self.resolving.remove(name)
                case SetTimer(at):
                    self.timer = at
                case FormCluster():
                    self.formed += 1
                case Found(peer):
                    assert peer.role == "manager"
                    assert peer.node_id != "m", "never ourselves"
        after = self.core.state
        assert len(self.asking) <= self.config.probes_max
        assert self.formed <= (1 if self.config.forms_cluster else 0)
        if (
            self.asking
            or self.resolving
            or after in (DiscoveryState.BACKOFF, DiscoveryState.JOINED)
        ):
            assert self.timer is not None, "something will happen"
        if after in (DiscoveryState.BACKOFF, DiscoveryState.FAILED):
            assert not self.asking
            assert not self.resolving
        if before is not after and before is not DiscoveryState.INITIAL:
            reach = {before}
            for _ in DiscoveryState:  # one event may make several moves
                reach |= {target for state in reach for target in TRANSITIONS[state].values()}
            assert after in reach


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(PLACES), min_size=1, max_size=6, unique=True),
    st.sampled_from([(), NAMES[:1], NAMES]),
    st.booleans(),
    st.none() | st.floats(0.5, 30.0),
    st.integers(1, 4),
    st.lists(events, max_size=120),
)
def test_any_order_of_events(
    seeds: list[tuple[str, int]],
    names: tuple[DnsName, ...],
    forms: bool,
    deadline_s: float | None,
    probes_max: int,
    history: list[tuple],
) -> None:
    config = DiscoverySettings(
        seeds=tuple(seeds),
        names=names,
        peer_roles=("manager",),
        forms_cluster=forms,
        deadline_s=deadline_s,
        probes_max=probes_max,
    )
    core = Discovery(speaker("m"), config, Random(1))
    watch = Watch(core, config)
    now = 0.0
    watch.carry(core.state, core.start(now))
    for event in history:
        before = core.state
        match event:
            case ("answer", which, who) if watch.asking:
                address = watch.asking.pop(which % len(watch.asking))
                answer = ProbeAnswer(who.cluster_id, who.environment_id, who.node)
                effects = core.answered(now, address, answer)
            case ("fail", which) if watch.asking:
                address = watch.asking.pop(which % len(watch.asking))
                effects = core.unanswered(now, address, "refused")
            case ("resolve", which, addresses) if watch.resolving:
                name = watch.resolving.pop(which % len(watch.resolving))
                effects = core.resolved(now, name, addresses)
            case ("no name", which) if watch.resolving:
                name = watch.resolving.pop(which % len(watch.resolving))
                effects = core.unresolved(now, name, "no such name")
            case ("probed", who) if who.cluster_id == "c":
                effects = core.probed(now, who)
            case ("members", members):
                core.members_are(members)
                continue
            case ("tick", pause):
                now += pause
                if watch.timer is None or now < watch.timer:
                    continue
                watch.timer = None
                effects = core.tick(now)
            case _:
                continue
        watch.carry(before, effects)
        if deadline_s is not None and core.state in SEARCHING:
            assert watch.timer is not None
            assert watch.timer <= deadline_s


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_any_bytes_are_an_answer_or_a_typed_failure(tail: bytes) -> None:
    question = encode_query(7, "_hs._tcp.example.org")[12:-11]
    for data in (tail, b"\x00\x07\x81\x80\x00\x01\x00\x04\x00\x00\x00\x00" + question + tail):
        try:
            found = decode_answer(data, 7, "_hs._tcp.example.org")
        except LookupFailed:
            continue
        assert found is None or (isinstance(found, Services) and found.records)
