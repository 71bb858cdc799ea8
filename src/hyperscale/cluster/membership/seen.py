"""Updates judged already, by their bytes: gossip repeats itself, and a second judgement of the
same words changes nothing until a row is dropped (then this memory is dropped too)."""

from __future__ import annotations


class Seen:
    __slots__ = ("_maximum", "_words")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._words: set[bytes] = set()

    def __contains__(self, words: bytes) -> bool:
        return words in self._words

    def add(self, words: bytes) -> None:
        if len(self._words) >= self._maximum:
            self._words.clear()
        self._words.add(words)

    def clear(self) -> None:
        self._words.clear()
