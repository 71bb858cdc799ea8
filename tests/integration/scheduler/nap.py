"""A job that leaves a trace of each run outside the scheduler, to compare the history with."""

from __future__ import annotations

import os
import time


def nap(journal: str, seconds: float) -> None:
    who = f"{os.environ['HYPERSCALE_JOB_ID']} {os.environ['HYPERSCALE_FENCING_TOKEN']}"
    _write(journal, f"began {who}\n")
    time.sleep(seconds)
    _write(journal, f"ended {who}\n")


def _write(journal: str, line: str) -> None:
    """In one piece, whoever else writes."""
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
