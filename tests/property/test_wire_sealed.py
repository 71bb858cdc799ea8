"""Sealed datagrams on a network that loses, repeats, delays and replays, and nodes that restart:
nothing opens twice, and what is said on a quiet network is heard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.wire.sealed import Sealer

SECRET = "a secret for properties 4711"
NAMES = ("node-a", "node-b")

# Which datagram ever sent is carried next (the newest, or any, again and again); 8 and 9 restart.
steps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 10_000)), max_size=120)


@given(steps)
def test_nothing_opens_twice(story: list[tuple[int, int]]) -> None:
    nodes = {name: Sealer(name, SECRET) for name in NAMES}
    carried: list[tuple[str, bytes]] = []  # to whom, and what: everything is recorded
    heard: list[bytes] = []
    said = 0

    def arrive(to: str, datagram: bytes) -> None:
        opened = nodes[to].open(datagram)
        if opened is None:
            return
        back = next(name for name in NAMES if name != to)
        carried.extend((back, answer) for answer in opened.answers)
        if opened.data is not None:
            assert opened.sender == back
            heard.append(opened.data)

    for what, which in story:
        if what < 3:
            name = NAMES[which % 2]
            said += 1
            carried.append((NAMES[1 - which % 2], nodes[name].seal(b"%d" % said)))
        elif what < 6 and carried:
            arrive(*carried[-1])
        elif what < 8 and carried:
            arrive(*carried[which % len(carried)])
        elif what >= 8:
            name = NAMES[which % 2]
            nodes[name] = Sealer(name, SECRET)
    assert len(heard) == len(set(heard))

    carried.clear()
    carried.append(("node-b", nodes["node-a"].seal(b"now")))
    for to, datagram in carried:  # grows by the answers
        arrive(to, datagram)
    assert heard[-1] == b"now"
