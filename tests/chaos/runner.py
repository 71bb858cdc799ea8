"""Rounds side by side, each a process in namespaces of its own; what a failed one wrote is kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.judge import Finding
from tests.chaos.network import UNSHARE

ROUND_S_MAX = 300
# Users make ten requests a second; the judge takes one away that is silent for a second.
STOOD_STILL_S_MAX = 0.7
TRIES = 3


@dataclass(frozen=True)
class Outcome:
    name: str
    summary: str
    findings: tuple[Finding, ...]
    folder: Path | None = None  # where the logs are, if they were kept
    stood_still_s: float = 0.0

    @property
    def is_evidence(self) -> bool:
        """A machine that stood still while it played says nothing about the cluster."""
        return self.stood_still_s <= STOOD_STILL_S_MAX

    @property
    def text(self) -> str:
        """The round's report, or what ended it."""
        file = self.folder / "report.txt" if self.folder is not None else None
        if file is not None and file.exists():
            return file.read_text()
        return "\n".join(f"{self.name}: {one.rule}: {one.text}" for one in self.findings)


def run_round(name: str, kept: Path, *, keep: bool = False) -> Outcome:
    """Once more when the machine was too busy with something else to tell."""
    for _ in range(TRIES):
        outcome = _run(name, kept, keep)
        if outcome.is_evidence:
            break
    return outcome


def _run(name: str, kept: Path, keep: bool) -> Outcome:
    # Not below `kept`: its path may be long, and a round has sockets with names.
    with tempfile.TemporaryDirectory(prefix="chaos-") as made:
        folder = Path(made) / "round"
        folder.mkdir()
        said = _play(name, folder)
        verdict = folder / "verdict.json"
        if not verdict.exists():
            found = Finding("harness", said.strip()[-2000:])
            return Outcome(name, "", (found,), _keep(folder, kept, name))
        read = json.loads(verdict.read_text())
        findings = tuple(Finding(**one) for one in read["findings"])
        home = _keep(folder, kept, name) if findings or keep else None
        return Outcome(name, read["summary"], findings, home, read["stood_still_s"])


def _keep(folder: Path, kept: Path, name: str) -> Path:
    home = kept / name
    shutil.rmtree(home, ignore_errors=True)
    return Path(shutil.copytree(folder, home))


def _play(name: str, folder: Path) -> str:
    held, lifeline = os.pipe()  # the round ends when nobody holds the other end any more
    process = subprocess.Popen(
        [*UNSHARE, sys.executable, "-m", "tests.chaos.play", name, str(folder)],
        stdin=held,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.close(held)
    try:
        said, _ = process.communicate(timeout=ROUND_S_MAX)
    except subprocess.TimeoutExpired:
        said = f"not over after {ROUND_S_MAX} s"
    finally:
        process.kill()  # and everything in its namespaces
        process.communicate()
        os.close(lifeline)
    return said


def run_rounds(
    names: Iterable[str], kept: Path, *, at_once: int = 1, keep: bool = False
) -> Iterator[Outcome]:
    """In the order of the names. `keep`: also the logs of those in which nothing was found."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(lambda name: run_round(name, kept, keep=keep), names)
