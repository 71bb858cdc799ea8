"""Rounds side by side, each a process in namespaces of its own; what a failed one wrote is kept."""

from __future__ import annotations

import json
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


@dataclass(frozen=True)
class Outcome:
    seed: int
    findings: tuple[Finding, ...]
    folder: Path  # with the logs, and `report.txt`

    @property
    def text(self) -> str:
        file = self.folder / "report.txt"
        return file.read_text() if file.exists() else ""


def run_round(seed: int, folder: Path) -> Outcome:
    folder.mkdir(parents=True)
    process = subprocess.Popen(
        [*UNSHARE, sys.executable, "-m", "tests.chaos.play", str(seed), str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = process.communicate(timeout=ROUND_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    verdict = folder / "verdict.json"
    if verdict.exists():
        findings = tuple(Finding(**one) for one in json.loads(verdict.read_text()))
    else:
        findings = (Finding("harness", said.strip()[-2000:]),)
    return Outcome(seed, findings, folder)


def run_rounds(seeds: Iterable[int], kept: Path, *, at_once: int = 1) -> Iterator[Outcome]:
    """In the order of the seeds. A round that found nothing leaves nothing behind."""
    kept.mkdir(parents=True, exist_ok=True)

    def one(seed: int) -> Outcome:
        # Unix sockets and certificates of nodes lie in it: a short path.
        folder = Path(tempfile.mkdtemp(prefix="chaos-")) / "round"
        outcome = run_round(seed, folder)
        if not outcome.findings:
            shutil.rmtree(folder.parent)
            return outcome
        home = kept / f"seed-{seed}"
        shutil.rmtree(home, ignore_errors=True)
        shutil.move(folder, home)
        folder.parent.rmdir()
        return Outcome(seed, outcome.findings, home)

    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(one, seeds)
