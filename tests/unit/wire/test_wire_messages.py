"""The catalogue of kinds, bodies, compression."""

import functools
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from hyperscale.wire import compression
from hyperscale.wire.envelope import HEADER_BYTES, Verb, pack_message, read_message, unpack
from hyperscale.wire.errors import Malformed, Reason, Refused
from hyperscale.wire.frames import COMPRESSED, PREFIX, FrameDecoder
from hyperscale.wire.messages import LIMIT_BYTES_MAX, Priority, Registry, decode_body
from hyperscale.wire.serving import Shape, shape_of


class Note(msgspec.Struct, tag="test.note"):
    text: str
    count: int = 0


class NoteLater(msgspec.Struct, tag="test.note"):
    text: str
    count: int = 0
    added: str = "new"


class Bare(msgspec.Struct):
    text: str


def catalogue() -> Registry:
    registry = Registry()
    registry.add(Note, priority=Priority.NORMAL, max_bytes=100_000)
    return registry


def test_a_kind_is_named_by_its_tag_or_by_hand() -> None:
    registry = catalogue()
    assert registry.of(Note("x")).name == "test.note"
    assert registry.add(Bare, kind="test.bare", priority=Priority.LOW).name == "test.bare"
    assert {kind.name: kind.priority for kind in registry} == {
        "test.note": Priority.NORMAL,
        "test.bare": Priority.LOW,
    }


def test_no_kind_without_a_priority() -> None:
    with pytest.raises(TypeError, match="priority"):
        Registry().add(Note)  # type: ignore[call-arg]


def test_missing_names_what_was_forgotten() -> None:
    assert catalogue().missing([Note, Bare]) == ["Bare"]


@pytest.mark.parametrize(
    ("struct", "options", "complaint"),
    [
        (Bare, {}, "needs a kind"),
        (Bare, {"kind": "x" * 65}, "needs a kind"),
        (Bare, {"kind": "test.note"}, "is taken"),
        (Note, {"kind": "other"}, "is taken"),
        (Bare, {"kind": "b", "max_bytes": LIMIT_BYTES_MAX + 1}, "may not be larger"),
        (Bare, {"kind": "b", "version": 1, "oldest": 2}, "no sensible versions"),
    ],
)
def test_bad_entries(struct: Any, options: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        catalogue().add(struct, priority=Priority.LOW, **options)


def test_catalogues_can_be_joined_once() -> None:
    registry = Registry()
    registry.include(catalogue())
    assert registry.of(Note("x")).name == "test.note"
    with pytest.raises(ValueError, match="is taken"):
        registry.include(catalogue())


def test_an_unregistered_struct_cannot_be_sent() -> None:
    with pytest.raises(TypeError, match="Bare is not a registered message"):
        catalogue().of(Bare("x"))


def test_unknown_kinds_and_old_versions_are_refused_by_name() -> None:
    registry = catalogue()
    with pytest.raises(Refused, match=r"test\.unheard: this node does not know it") as caught:
        registry.named(b"test.unheard", 1)
    assert caught.value.code == Reason.UNKNOWN_KIND
    registry.add(Bare, kind="test.bare", priority=Priority.LOW, version=3, oldest=2)
    with pytest.raises(Refused, match="version 1 is too old, 2 or later") as caught:
        registry.named(b"test.bare", 1)
    assert caught.value.code == Reason.OLD_VERSION
    assert registry.named(b"test.bare", 9).name == "test.bare"


def test_unknown_fields_are_ignored_and_missing_ones_defaulted_or_refused() -> None:
    kind = catalogue().of(Note(""))
    assert decode_body(kind, msgspec.msgpack.encode(NoteLater("x", 3))) == Note("x", 3)
    assert decode_body(kind, msgspec.msgpack.encode({"type": "test.note", "text": "x"})) == Note(
        "x"
    )
    with pytest.raises(Refused, match="missing required field `text`") as caught:
        decode_body(kind, msgspec.msgpack.encode({"type": "test.note", "count": 1}))
    assert caught.value.code == Reason.MALFORMED


def test_our_own_message_may_not_be_too_large_either() -> None:
    registry = catalogue()
    with pytest.raises(Refused, match="where 100,000 are allowed") as caught:
        pack_message(Verb.SEND, 0, 0, registry.of(Note("")), Note("x" * 100_000))
    assert caught.value.code == Reason.TOO_LARGE


def test_large_bodies_travel_compressed() -> None:
    kind = catalogue().of(Note(""))
    note = Note(" ".join(str(number) for number in range(15_000)))
    frame = pack_message(Verb.REQUEST, 7, 250, kind, note)
    assert len(frame) < len(note.text) / 2
    decoder = FrameDecoder()
    decoder.feed(frame)
    ((flags, payload),) = decoder
    envelope = unpack(payload)
    assert flags == COMPRESSED
    assert (envelope.verb, envelope.id, envelope.number) == (Verb.REQUEST, 7, 250)
    assert read_message(kind, flags, envelope.body) == note


def test_small_and_incompressible_bodies_travel_as_they_are() -> None:
    assert compression.compress(b"a" * 1000) is None
    noise = b"".join(hash((1, n)).to_bytes(8, "big", signed=True) for n in range(2000))
    assert compression.compress(noise) is None


def test_what_the_guard_would_refuse_is_not_compressed() -> None:
    assert compression.compress(bytes(1_000_000)) is None


def bombs() -> list[tuple[str, bytes]]:
    import zstandard

    ratio = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(b"abc" * 3000)
    large = zstandard.ZstdCompressor().compress(" ".join(map(str, range(50_000))).encode())
    cut = zstandard.ZstdCompressor().compress(" ".join(map(str, range(9_000))).encode())[:-20]
    return [
        ("50,000,000 bytes, where 100,000", ratio),
        ("does not tell its size", silent),
        ("bytes, where 100,000 are allowed", large),
        ("cannot be unpacked", cut),
        ("cannot be unpacked", b"not zstd at all"),
    ]


@pytest.mark.parametrize(("complaint", "packed"), bombs())
def test_bombs_are_refused(complaint: str, packed: bytes) -> None:
    with pytest.raises(Malformed, match=complaint):
        compression.decompress(packed, 100_000)


def test_the_ratio_counts_even_below_the_limit() -> None:
    import zstandard

    packed = zstandard.ZstdCompressor().compress(bytes(90_000))
    with pytest.raises(Malformed, match="more than 100 times"):
        compression.decompress(packed, 100_000)


def test_prefix_and_header_have_the_documented_sizes() -> None:
    assert PREFIX.size == 5
    assert HEADER_BYTES == 11


def plain(call: Any, message: Any) -> None: ...
async def coroutine(call: Any, message: Any) -> None: ...
async def updates(call: Any, message: Any) -> AsyncIterator[int]:
    yield 1


class Callable:
    async def __call__(self, call: Any, message: Any) -> None: ...
    def method(self, call: Any, message: Any) -> None: ...


@pytest.mark.parametrize(
    ("handler", "shape"),
    [
        (plain, Shape.PLAIN),
        (coroutine, Shape.COROUTINE),
        (updates, Shape.UPDATES),
        (functools.partial(coroutine), Shape.COROUTINE),
        (Callable(), Shape.COROUTINE),
        (Callable().method, Shape.PLAIN),
    ],
)
def test_the_shape_of_a_handler_is_seen(handler: Any, shape: Shape) -> None:
    assert shape_of(handler) is shape
