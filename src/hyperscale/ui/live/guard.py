"""Gives the terminal back however the process ends or is stopped.

Exceptions and cancellation go through `finally`; this covers what does not: `sys.exit` from
elsewhere, signals whose default is death, and Ctrl-Z. A signal somebody else handles is left to
them, and a forked child never touches its parent's terminal.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]

_DEADLY = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def restored_at_exit(restore: Callable[[], None]) -> Iterator[None]:
    """Calls `restore` (which must be safe to repeat) before death or suspension, and at the end."""
    owner = os.getpid()

    def leave() -> None:
        if os.getpid() == owner:
            restore()

    def die(signum: int, _frame: FrameType | None) -> None:
        leave()
        signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)

    def suspend(_signum: int, _frame: FrameType | None) -> None:
        leave()
        os.kill(os.getpid(), signal.SIGSTOP)

    installed: list[tuple[int, Handler]] = []
    if threading.current_thread() is threading.main_thread():
        handlers: dict[int, Handler] = dict.fromkeys(_DEADLY, die)
        handlers[signal.SIGTSTP] = suspend
        for signum, handler in handlers.items():
            if signal.getsignal(signum) is signal.SIG_DFL:
                signal.signal(signum, handler)
                installed.append((signum, handler))
    atexit.register(leave)
    try:
        yield
    finally:
        leave()
        atexit.unregister(leave)
        for signum, handler in installed:
            if signal.getsignal(signum) is handler:
                signal.signal(signum, signal.SIG_DFL)
