"""HPACK (RFC 7541): fields as blocks, and blocks as fields, by way of a table that both sides keep.

The table of a connection is never changed: a block leads from one table to the next, equal tables
are one object, and each knows where the blocks that it has met lead to. Servers repeat their
answers, so after a few of them the table of a connection stays the same one, and the block of an
answer is one lookup; the same holds for requests. A connection holds a reference, not a table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from hyperscale.http2 import huffman

Field = tuple[bytes, bytes]
Entries = tuple[Field, ...]

TABLE_BYTES = 4096  # what either side may use until it is told otherwise
ENTRY_BYTES = 32  # what a field counts beside its name and value (4.1)
# What is kept of all tables together: a few megabytes at most.
BLOCKS_MAX = 4096
BLOCK_BYTES_MAX = 4096
_NUMBER_BYTES = 4  # of a long number: more than any length that may come

_STATIC_TEXT = """
:authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|
:status 200|:status 204|:status 206|:status 304|:status 400|:status 404|:status 500|
accept-charset|accept-encoding gzip, deflate|accept-language|accept-ranges|accept|
access-control-allow-origin|age|allow|authorization|cache-control|content-disposition|
content-encoding|content-language|content-length|content-location|content-range|content-type|
cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|
if-unmodified-since|last-modified|link|location|max-forwards|proxy-authenticate|
proxy-authorization|range|referer|refresh|retry-after|server|set-cookie|
strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate
"""
STATIC: Entries = tuple(
    (name.encode(), value.encode())
    for name, _, value in (
        line.partition(" ") for line in _STATIC_TEXT.replace("\n", "").split("|")
    )
)
_FIRST = len(STATIC) + 1  # the number of the newest entry of a table
_WHOLE = {field: at for at, field in reversed(list(enumerate(STATIC, 1)))}
_NAMES = {field[0]: at for at, field in reversed(list(enumerate(STATIC, 1)))}

# Fields that a client sends with the same value again and again. All others go as they are: a
# value that changes with every request would drive the lasting ones out of the table.
_LASTING = frozenset(
    b":authority :method :status accept accept-encoding accept-language cache-control content-type "
    b"grpc-accept-encoding grpc-encoding origin referer server te user-agent".split()
)
_SECRET = frozenset((b"authorization", b"cookie", b"proxy-authorization"))


class BadBlock(Exception):
    """The bytes are not a header block; the message completes 'the peer sent ...'."""


class Block:
    """The fields of a block and the table after it; `meaning` is what its reader made of them."""

    __slots__ = ("after", "fields", "meaning")

    def __init__(self, fields: Entries, after: Table) -> None:
        self.fields = fields
        self.after = after
        self.meaning: Any = None


class Table:
    """`entries` are the newest first. `decoded` and `encoded` hold the blocks it has met."""

    __slots__ = ("decoded", "encoded", "entries", "limit", "size")

    def __init__(self, entries: Entries, limit: int, size: int) -> None:
        self.entries = entries
        self.limit = limit
        self.size = size
        self.decoded: dict[bytes, Block] = {}
        self.encoded: dict[Hashable, tuple[bytes, Table]] = {}


class Tables:
    """All tables of a side; `list_bytes_max` bounds the fields of one block."""

    __slots__ = ("_count", "_known", "list_bytes_max")

    def __init__(self, list_bytes_max: int) -> None:
        self.list_bytes_max = list_bytes_max
        self._known: dict[tuple[int, Entries], Table] = {}
        self._count = 0

    def table(self, entries: Entries = (), limit: int = TABLE_BYTES, size: int = 0) -> Table:
        known = self._known.get((limit, entries))
        if known is None:
            self._make_room()
            known = self._known[limit, entries] = Table(entries, limit, size)
        return known

    def resized(self, table: Table, limit: int) -> Table:
        entries = list(table.entries)
        size = _evict(entries, table.size, limit)
        return self.table(tuple(entries), limit, size)

    def _make_room(self) -> None:
        if len(self._known) + self._count >= BLOCKS_MAX:
            for known in self._known.values():  # they lead to each other in circles
                known.decoded.clear()
                known.encoded.clear()
            self._known.clear()
            self._count = 0

    def _keep(self, kept: dict[Any, Any], key: Any, value: object) -> None:
        self._make_room()
        self._count += 1
        kept[key] = value

    # -- reading -----------------------------------------------------------------------------------

    def decode(self, table: Table, data: bytes) -> Block:
        """Raises BadBlock."""
        known = table.decoded.get(data)
        if known is None:
            try:
                known = self._decode(table, data)
            except (IndexError, huffman.BadHuffman):
                raise BadBlock("a header block that cannot be read") from None
            if len(data) <= BLOCK_BYTES_MAX:
                self._keep(table.decoded, data, known)
        return known

    def _decode(self, table: Table, data: bytes) -> Block:
        entries, size, limit = list(table.entries), table.size, table.limit
        fields: list[Field] = []
        room = self.list_bytes_max
        at, end = 0, len(data)
        while at < end:
            byte = data[at]
            if byte & 0x80:
                index, at = _number(data, at, 0x7F)
                field = _entry(entries, index)
            elif byte & 0x20 and not byte & 0x40:
                limit, at = _number(data, at, 0x1F)
                if fields or limit > TABLE_BYTES:
                    raise BadBlock("a header table that is larger than allowed, or too late")
                size = _evict(entries, size, limit)
                continue
            else:
                index, at = _number(data, at, 0x3F if byte & 0x40 else 0x0F)
                name = _entry(entries, index)[0] if index else b""
                if not index:
                    name, at = _string(data, at)
                value, at = _string(data, at)
                field = name, value
                if byte & 0x40:
                    entries.insert(0, field)
                    size = _evict(entries, size + _size(field), limit)
            fields.append(field)
            room -= _size(field)
            if room < 0:
                most = self.list_bytes_max
                raise BadBlock(f"headers of more than {most} bytes (max_header_bytes)")
        return Block(tuple(fields), self.table(tuple(entries), limit, size))

    # -- writing -----------------------------------------------------------------------------------

    def encode(
        self, table: Table, fields: Iterable[Field], key: Hashable = None
    ) -> tuple[bytes, Table]:
        """The block and the table after it, kept under the key when there is one."""
        entries = list(table.entries)
        block = b"".join([_field(entries, table.limit, field) for field in fields])
        made = block, self.table(tuple(entries), table.limit, sum(map(_size, entries)))
        if key is not None:
            self._keep(table.encoded, key, made)
        return made


def size_update(limit: int) -> bytes:
    """What stands before the next block when the table was made smaller or larger."""
    return _written(limit, 0x20, 0x1F)


def _entry(entries: list[Field], index: int) -> Field:
    if not index:
        raise IndexError
    return STATIC[index - 1] if index < _FIRST else entries[index - _FIRST]


def _size(field: Field) -> int:
    return len(field[0]) + len(field[1]) + ENTRY_BYTES


def _evict(entries: list[Field], size: int, limit: int) -> int:
    """Drop the oldest until the others fit; their size."""
    while size > limit:
        size -= _size(entries.pop())
    return size


def _number(data: bytes, at: int, mask: int) -> tuple[int, int]:
    number = data[at] & mask
    at += 1
    if number < mask:
        return number, at
    for shift in range(0, 7 * _NUMBER_BYTES, 7):
        byte = data[at]
        at += 1
        number += (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise BadBlock("a number in a header block that has no end")


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    coded = data[at] & 0x80
    size, at = _number(data, at, 0x7F)
    end = at + size
    if end > len(data):
        raise IndexError
    text = data[at:end]
    return (huffman.decode(text) if coded else text), end


def _written(number: int, pattern: int, mask: int) -> bytes:
    if number < mask:
        return bytes((pattern | number,))
    rest = number - mask
    written = bytearray((pattern | mask,))
    while rest >= 0x80:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    written.append(rest)
    return bytes(written)


def _text(text: bytes) -> bytes:
    coded = huffman.encode(text)
    if len(coded) < len(text):
        return _written(len(coded), 0x80, 0x7F) + coded
    return _written(len(text), 0, 0x7F) + text


def _field(entries: list[Field], limit: int, field: Field) -> bytes:
    """As it is written; put into the entries when it will come again."""
    index = _WHOLE.get(field, 0)
    if not index and field in entries:
        index = entries.index(field) + _FIRST
    if index:
        return _written(index, 0x80, 0x7F)
    name, value = field
    named = _NAMES.get(name, 0)
    if name in _LASTING and _size(field) <= limit:
        entries.insert(0, field)
        _evict(entries, sum(map(_size, entries)), limit)
        start = _written(named, 0x40, 0x3F)
    else:
        start = _written(named, 0x10 if name in _SECRET else 0, 0x0F)
    return start + (b"" if named else _text(name)) + _text(value)
