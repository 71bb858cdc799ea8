"""A session against `h2` as the server, in any cut of the bytes; and against bytes of any kind."""

from __future__ import annotations

import h2.config
import h2.connection
import h2.events
import h2.settings
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.http2 import frames
from hyperscale.http2.hpack import Block, Field, Tables
from hyperscale.http2.session import Session
from hyperscale.http2.stream import Stream

FIELDS = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/"),
    (b":authority", b"shop.example"),
]


class Heard(Stream):
    def __init__(self, body: bytes = b"") -> None:
        super().__init__()
        self.blocks: list[tuple[Field, ...]] = []
        self.body = b""
        self.how = ""
        self.ends = True
        self.outbox = memoryview(body) if body else None

    def on_headers(self, block: Block, now: float) -> None:
        self.blocks.append(block.fields)

    def on_data(self, data: bytes, now: float) -> None:
        self.body += data

    def on_end(self, now: float) -> None:
        self.how += "ended"

    def on_reset(self, code: int, now: float) -> None:
        self.how += "reset"

    def on_refused(self, now: float) -> None:
        self.how += "refused"

    def on_fault(self, code: int, fault: str, now: float) -> None:
        self.how += "fault"


def taken(session: Session) -> bytes:
    data = b"".join(session.out)
    session.out.clear()
    return data


class Pair:
    """A session of ours and the server that answers it, joined by cuts of any size."""

    def __init__(self, cuts: list[int], window: int, frame: int) -> None:
        self.session = Session(Tables(65536))
        self.server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.server.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window,
                h2.settings.SettingCodes.MAX_FRAME_SIZE: frame,
            },
        )
        self.server.initiate_connection()
        self.cuts = cuts or [1]
        self.bodies: dict[int, bytes] = {}
        self.ended: set[int] = set()

    def exchange(self) -> None:
        """Until neither has anything more to say."""
        while True:
            ours, theirs = taken(self.session), self.server.data_to_send()
            if not ours and not theirs:
                return
            for event in self.server.receive_data(ours) if ours else ():
                match event:
                    case h2.events.DataReceived():
                        stream = event.stream_id or 0
                        self.bodies[stream] = self.bodies.get(stream, b"") + event.data
                        self.server.acknowledge_received_data(event.flow_controlled_length, stream)
                    case h2.events.StreamEnded():
                        self.ended.add(event.stream_id or 0)
            at = turn = 0
            while at < len(theirs):
                size = self.cuts[turn % len(self.cuts)]
                self.session.receive(theirs[at : at + size], 0.0)
                at, turn = at + size, turn + 1


@given(
    bodies=st.lists(st.binary(max_size=3000).map(lambda one: one * 30), min_size=1, max_size=4),
    cuts=st.lists(st.integers(1, 5000), max_size=5),
    window=st.sampled_from([1, 100, 16384, 65535, 1_000_000]),
    frame=st.sampled_from([16384, 100_000]),
    padding=st.sampled_from([None, 0, 100]),
    trailers=st.booleans(),
)
def test_requests_and_answers_arrive(
    bodies: list[bytes],
    cuts: list[int],
    window: int,
    frame: int,
    padding: int | None,
    trailers: bool,
) -> None:
    if window == 1:
        bodies = [body[:50] for body in bodies]
    pair = Pair(cuts, window, frame)
    pair.exchange()  # h2 holds a client to its settings before that can know them
    streams = [Heard(body) for body in bodies]
    for stream, body in zip(streams, bodies, strict=True):
        pair.session.open(stream, b"%d" % len(body), lambda key: FIELDS)
    pair.exchange()
    assert not pair.session.fault
    for stream, body in zip(streams, bodies, strict=True):
        assert pair.bodies.get(stream.id, b"") == body
        assert stream.id in pair.ended
        head = [(":status", "200"), ("x-size", str(len(body)))]
        pair.server.send_headers(stream.id, head)
        for at in range(0, len(body), 10_000):
            pair.server.send_data(stream.id, body[at : at + 10_000], pad_length=padding)
        if trailers:
            pair.server.send_headers(stream.id, [("x-sum", "1")], end_stream=True)
        else:
            pair.server.end_stream(stream.id)
    pair.exchange()
    for stream, body in zip(streams, bodies, strict=True):
        assert stream.body == body
        assert stream.how == "ended"
        assert len(stream.blocks) == 1 + trailers
    assert not pair.session.fault
    assert not pair.session.streams


@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    session = Session(Tables(65536))
    stream = Heard()
    session.open(stream, b"", lambda key: FIELDS)
    session.receive(data, 0.0)


KIND = st.integers(0, 10)
FRAME = st.builds(
    frames.frame,
    KIND,
    st.integers(0, 255),
    st.sampled_from([0, 1, 2, 3, 5, 2**31 + 1]),
    st.one_of(st.binary(max_size=20), st.sampled_from([bytes(4), bytes(8), b"\x88", b"\xff" * 6])),
)


@given(st.lists(FRAME, max_size=30), st.integers(1, 40))
def test_no_frames_raise_and_each_stream_ends_once(sent: list[bytes], cut: int) -> None:
    for accept in (None, Heard):
        session = Session(Tables(65536), accept)
        streams = [Heard(b"x" * 100_000), Heard()]
        for stream in streams if accept is None else ():
            session.open(stream, b"", lambda key: FIELDS)
        data = frames.settings({}) + b"".join(sent)
        for at in range(0, len(data), cut):
            session.receive(data[at : at + cut], 0.0)
        for stream in streams:
            broke = stream.how.removeprefix("ended")  # after its end this side still had a say
            assert broke in ("", "reset", "refused", "fault")
            if broke:
                assert stream.id not in session.streams
