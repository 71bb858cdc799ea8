"""How many files a process may have open at once, connections included."""

from __future__ import annotations

import errno

# For the log, the vote, the checkpoint being written and connections of our own: files that must be
# had when strangers have taken all others. A process with very few leaves a quarter.
FILES_KEPT = 64
UNLIMITED = 1 << 20


def open_files_max() -> int:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return UNLIMITED
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> int:
    """Lift the soft open-file limit to the hard one; returns the limit in force."""
    try:
        import resource
    except ImportError:
        return UNLIMITED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = UNLIMITED
    if soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft
    return hard


def files_for_others() -> int:
    """File numbers from this one on are not for those who connect to us."""
    most = open_files_max()
    return most - min(FILES_KEPT, most // 4)


def is_out_of_files(error: OSError) -> bool:
    """Of this process, or of the machine: nothing was done, and the same may succeed later."""
    return error.errno in (errno.EMFILE, errno.ENFILE)
