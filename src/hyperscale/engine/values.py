"""Values that workflows hand on, as bytes that run nothing when they are read.

They may come from a worker that somebody else has taken over, so a generator reads plain values
only. A test that needs more says `pickle_values = True`, and trusts every worker of its cluster.
What comes out has the types that went in, the same in a local run as in a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

PLAIN: Final = "None, bool, int, float, str, bytes, list, tuple, dict, set, frozenset, datetime"
# The first byte. Sealed values begin with 0, and every pickle with this one.
_PACKED: Final = b"\x01"
_PICKLED: Final = b"\x80"
_PASSED_AS_THEY_ARE: Final = (type(None), bool, float, bytes)
# What msgpack has no form for: a number, and the bytes that say it.
_TUPLE, _SET, _FROZENSET, _DATETIME, _LARGE_INT, _BROKEN_TEXT, _PAIRS = range(1, 8)


class NotPlain(Exception):
    """Something in a value that cannot be packed; says what it is."""


class Unreadable(Exception):
    """Bytes that are no value, or one that this test did not ask for; says why."""


def pack(value: Any) -> bytes:
    try:
        return _PACKED + _encode(_plain(value))
    except RecursionError:
        raise NotPlain("a value that holds itself, or is nested too deeply") from None


def pickled(value: Any) -> bytes:
    import cloudpickle

    data: bytes = cloudpickle.dumps(value)
    return data


def unpack(data: bytes, pickles: bool) -> Any:
    """Only with `pickles` may reading run code."""
    if data.startswith(_PACKED):
        try:
            return _decode(data[1:])
        except (msgspec.DecodeError, ValueError, TypeError, RecursionError) as error:
            raise Unreadable(f"it is broken: {error}") from None
    if not data.startswith(_PICKLED):
        raise Unreadable("it is in no form that is known here")
    if not pickles:
        raise Unreadable("it is a pickle, and no workflow of this test has pickle_values = True")
    import pickle

    return pickle.loads(data)


def _plain(value: Any) -> Any:
    """In types that msgpack gives back. A subclass would come out as something else."""
    kind = type(value)
    if kind in _PASSED_AS_THEY_ARE:
        return value
    if kind not in _FORMS:
        raise NotPlain(f"a value of type {kind.__module__}.{kind.__qualname__}")
    return _FORMS[kind](value)


def _text(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character, perhaps out of the target's JSON
        return msgspec.msgpack.Ext(_BROKEN_TEXT, value.encode("utf-8", "surrogatepass"))
    return value


def _integer(value: int) -> Any:
    if -(2**63) <= value < 2**64:
        return value
    return msgspec.msgpack.Ext(_LARGE_INT, f"{value:x}".encode())


def _items(value: Any) -> list[Any]:
    return [_plain(each) for each in value]


def _mapping(value: dict[Any, Any]) -> Any:
    """Keys that are no sound text cannot be keys in msgpack, or not all of them."""
    if all(type(key) is str and _text(key) is key for key in value):
        return {key: _plain(each) for key, each in value.items()}
    pairs = [_plain(each) for pair in value.items() for each in pair]
    return msgspec.msgpack.Ext(_PAIRS, _encode(pairs))


def _as(code: int) -> Callable[[Any], Any]:
    return lambda value: msgspec.msgpack.Ext(code, _encode(_items(value)))


def _extended(code: int, data: memoryview) -> Any:
    if code == _TUPLE:
        return tuple(_decode(data))
    if code == _SET:
        return set(_decode(data))
    if code == _FROZENSET:
        return frozenset(_decode(data))
    if code == _DATETIME:
        return datetime.fromisoformat(str(data, "ascii"))
    if code == _LARGE_INT:
        return int(str(data, "ascii"), 16)
    if code == _BROKEN_TEXT:
        return str(data, "utf-8", "surrogatepass")
    if code == _PAIRS:
        pairs = _decode(data)
        return dict(zip(pairs[::2], pairs[1::2], strict=True))
    raise ValueError(f"a value of the unknown form {code}")


_FORMS: Final[dict[type, Callable[[Any], Any]]] = {
    int: _integer,
    str: _text,
    list: _items,
    dict: _mapping,
    tuple: _as(_TUPLE),
    set: _as(_SET),
    frozenset: _as(_FROZENSET),
    datetime: lambda value: msgspec.msgpack.Ext(_DATETIME, value.isoformat().encode()),
}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ext_hook=_extended).decode
