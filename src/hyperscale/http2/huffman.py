"""The Huffman code of header strings (RFC 7541, appendix B).

The code is canonical, so the lengths of its 257 codes say all of it. Strings are read four bits at
a time: no code is shorter than five, so each step ends one symbol at most.
"""

from __future__ import annotations

from functools import cache, lru_cache

_LENGTHS = (  # by symbol
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
)  # fmt: skip
_END = 256  # a symbol that may not stand in a string; the first bits of its code are the padding
_SHORT_BYTES = 64  # strings up to here are remembered: servers repeat theirs

Step = tuple[int, int]
"""The state after four bits, times 16, and the symbol that they end; -1: none."""


class BadHuffman(Exception):
    pass


@cache
def _codes() -> tuple[str, ...]:
    """By symbol, as text of 0 and 1."""
    codes = [""] * len(_LENGTHS)
    code = length = 0
    for symbol in sorted(range(len(_LENGTHS)), key=lambda each: (_LENGTHS[each], each)):
        code <<= _LENGTHS[symbol] - length
        length = _LENGTHS[symbol]
        codes[symbol] = f"{code:0{length}b}"
        code += 1
    return tuple(codes)


@cache
def _steps() -> tuple[list[Step | None], frozenset[int]]:
    """Where four bits lead to from each state, None: nowhere; and the states where a string may
    end: those that up to seven bits of padding lead to."""
    codes = _codes()
    states = {"": 0}  # what was read of the code that is under way
    for code in codes:
        for size in range(1, len(code)):
            states.setdefault(code[:size], len(states) * 16)
    ended = {code: symbol for symbol, code in enumerate(codes)}
    steps: list[Step | None] = [None] * (len(states) * 16)
    for begun, state in states.items():
        for bits in range(16):
            read, symbol = begun, -1
            for bit in f"{bits:04b}":
                read += bit
                if read in ended:
                    symbol = ended[read]
                    read = ""
            if symbol != _END and read in states:
                steps[state + bits] = states[read], symbol
    return steps, frozenset(states["1" * size] for size in range(8))


def decode(data: bytes) -> bytes:
    """Raises BadHuffman."""
    return _remembered(data) if len(data) <= _SHORT_BYTES else _decode(data)


def _decode(data: bytes) -> bytes:
    steps, ends = _steps()
    state = 0
    found = bytearray()
    for byte in data:
        for bits in (byte >> 4, byte & 15):
            step = steps[state + bits]
            if step is None:
                raise BadHuffman
            state, symbol = step
            if symbol >= 0:
                found.append(symbol)
    if state not in ends:
        raise BadHuffman
    return bytes(found)


_remembered = lru_cache(maxsize=4096)(_decode)


def encode(text: bytes) -> bytes:
    codes = _codes()
    bits = "".join([codes[byte] for byte in text])
    bits += "1" * (-len(bits) % 8)
    return int(bits or "0", 2).to_bytes(len(bits) // 8, "big")
