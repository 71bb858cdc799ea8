from __future__ import annotations

import os
import pty
import select
from collections.abc import Iterator

import pyte
import pytest
from rich.segment import Segment

from hyperscale.ui.live.screen import Screen

SIZE = (200, 60)


class Pair:
    """Both ends of a pseudo-terminal; what `read` takes is shown by `display`."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self._emulator = pyte.Screen(*SIZE)
        self._feed = pyte.ByteStream(self._emulator).feed

    def read(self) -> bytes:
        data = b""
        while select.select([self.master], [], [], 0)[0]:
            data += os.read(self.master, 65536)
        self._feed(data)
        return data

    @property
    def display(self) -> list[str]:
        return list(self._emulator.display)


@pytest.fixture
def pair() -> Iterator[Pair]:
    it = Pair()
    yield it
    it.stream.close()
    os.close(it.master)


def lines(letter: str) -> list[list[Segment]]:
    return [[Segment(letter * SIZE[0])] for _ in range(SIZE[1])]


def test_frame_larger_than_the_terminal_takes_at_once_goes_out_in_parts(pair: Pair) -> None:
    screen = Screen(pair.stream, {"TERM": "xterm"})
    screen.enter()
    for letter in "abcdefghij":
        screen.paint(lines(letter), SIZE)
    assert screen.owes
    for _ in range(1000):
        pair.read()
        screen.flush()
        if not screen.owes:
            break
    screen.paint(lines("z"), SIZE)
    for _ in range(1000):
        pair.read()
        screen.flush()
        if not screen.owes:
            break
    pair.read()
    assert pair.display == ["z" * SIZE[0]] * SIZE[1]
    screen.leave()


def test_only_changed_lines_are_sent(pair: Pair) -> None:
    screen = Screen(pair.stream, {"TERM": "xterm"})
    screen.enter()
    first = [[Segment("title")], [Segment("old")], [Segment("end")]]
    screen.paint(first, SIZE)
    pair.read()
    screen.paint([first[0], [Segment("new")], first[2]], SIZE)
    sent = pair.read()
    assert b"new" in sent
    assert b"title" not in sent
    screen.forget()
    screen.paint(first, SIZE)
    assert b"title" in pair.read()
    screen.leave()


def test_control_characters_in_names_do_not_act(pair: Pair) -> None:
    screen = Screen(pair.stream, {"TERM": "xterm"})
    screen.enter()
    pair.read()
    screen.paint([[Segment("\x1b]0;title\x07na\x1b[2Jme")]], SIZE)
    assert pair.read().count(b"\x1b") == 3  # clear, move, erase the rest of the line
    screen.leave()


def test_no_color_draws_without_colours(pair: Pair) -> None:
    from hyperscale.ui.live import palette

    screen = Screen(pair.stream, {"TERM": "xterm", "NO_COLOR": "1"})
    screen.enter()
    screen.paint([[Segment("red", palette.BAD)]], SIZE)
    assert b"\x1b[31m" not in pair.read()
    screen.leave()


def test_terminal_that_went_away_is_not_an_error() -> None:
    pair = Pair()
    screen = Screen(pair.stream, {"TERM": "xterm"})
    screen.enter()
    os.close(pair.master)
    screen.paint(lines("a"), SIZE)
    screen.paint(lines("b"), SIZE)
    screen.leave()
    pair.stream.close()
