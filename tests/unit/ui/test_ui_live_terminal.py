"""The full view in a real pseudo-terminal: what arrives on the screen, and what is left behind."""

from __future__ import annotations

import os
import signal

import pytest

from hyperscale.ui.live.charts import Charts
from hyperscale.ui.live.layout import compose
from hyperscale.ui.live.scene import Scene
from tests.unit.ui.pty_terminal import Terminal, terminal
from tests.unit.ui.sample import sample_results

LEAVE = b"\x1b[?25h\x1b[?1049l"


def assert_given_back(it: Terminal) -> None:
    assert it.settings() == it.settings_before
    assert it.seen.count(b"\x1b[?1049h") == it.seen.count(b"\x1b[?1049l") > 0
    assert it.seen.rindex(LEAVE) > it.seen.rindex(b"\x1b[?25l")
    assert it.seen.rindex(b"\x1b[?7h") > it.seen.rindex(b"\x1b[?7l")


def expected(columns: int, rows: int) -> list[str]:
    frame = compose(Scene(sample_results("running")), Charts(), columns, rows)
    return ["".join(segment.text for segment in line).ljust(columns) for line in frame]


@pytest.mark.parametrize(
    ("columns", "rows"), [(120, 40), (80, 24), (61, 17), (40, 12), (40, 10), (200, 60)]
)
def test_screen_shows_the_frame_unwrapped_at_any_size(columns: int, rows: int) -> None:
    with terminal(columns, rows, "endless") as it:
        it.read_until(lambda: it.screen.display == expected(columns, rows))


def test_resize_lays_out_anew() -> None:
    with terminal(120, 40, "endless") as it:
        it.read_until(lambda: it.screen.display == expected(120, 40))
        it.resize(50, 14)
        it.read_until(lambda: it.screen.display == expected(50, 14))


def test_terminal_is_given_back_at_the_end() -> None:
    with terminal(80, 24, "ends") as it:
        assert it.read_until_exit() == 0
        assert_given_back(it)


def test_terminal_is_given_back_after_an_exception() -> None:
    with terminal(80, 24, "breaks") as it:
        assert it.read_until_exit() == 1
        assert_given_back(it)
        assert it.seen.index(b"the source broke") > it.seen.rindex(LEAVE)


def test_terminal_is_given_back_after_sys_exit() -> None:
    with terminal(80, 24, "exits") as it:
        assert it.read_until_exit() == 7
        assert_given_back(it)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_terminal_is_given_back_after_a_deadly_signal(number: signal.Signals) -> None:
    with terminal(80, 24, "endless") as it:
        it.read_until(lambda: it.shows("q stop"))
        it.signal(number)
        assert it.read_until_exit() == -number
        assert_given_back(it)


def test_suspended_view_gives_the_terminal_back_and_takes_it_again() -> None:
    with terminal(80, 24, "endless") as it:
        it.read_until(lambda: it.shows("q stop"))
        assert not it.echoes
        it.signal(signal.SIGTSTP)
        _, status = os.waitpid(it.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        it.read_until(lambda: it.seen.endswith(LEAVE))
        assert it.settings() == it.settings_before
        it.signal(signal.SIGCONT)
        it.read_until(lambda: it.seen.count(b"\x1b[?1049h") == 2)
        it.read_until(lambda: not it.echoes)


def test_keys_reach_the_run() -> None:
    with terminal(80, 24, "keys") as it:
        it.read_until(lambda: it.shows("p pause"))
        it.type(b"p")
        it.read_until(lambda: it.shows("p resume"))
        it.type(b"p")
        it.read_until(lambda: it.shows("p pause"))
        it.type(b"+\x1b[A-")
        it.read_until(lambda: it.shows("10 % less of 2 workflows"))
        it.type(b"\t\t")
        it.read_until(lambda: it.shows("Search 2/2"))
        it.type(b"-")
        it.read_until(lambda: it.shows("lowering the rate by 10 %"))
        it.type(b"0")
        it.read_until(lambda: it.shows("2 workflows"))
        it.type(b"q")
        it.read_until(lambda: it.shows("q stop now"))
        it.type(b"q")
        assert it.read_until_exit() == 0
        assert it.process.stdout
        assert it.process.stdout.read() == (
            b"pause,resume,scale Checkout +6,rate Search 1.1,scale Checkout -7,rate Search 0.9,"
            b"rate Search 0.9,stop,kill"
        )
        assert_given_back(it)


def test_terminal_that_takes_nothing_does_not_hold_the_run() -> None:
    with terminal(200, 60, "long") as it:
        assert it.process.wait(timeout=20) == 0
