"""A node killed (SIGKILL) between every two steps of a submission, and at random under load.

What clients were told is kept here, outside: no answer may ever change, and every key has exactly
one job in the end.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEY = "host:17:{}:0123456789abcdef"
STEPS_OF_A_SUBMISSION = 10
"""Three appends with three steps each, and the answer."""
ALIVE = 0


class Node:
    """The process, spoken to over its standard streams."""

    def __init__(self, directory: Path, die_at: int) -> None:
        command = [sys.executable, "-m", "tests.fixtures.submission_node", str(directory)]
        self.process = subprocess.Popen(
            [*command, str(die_at)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def tell(self, *lines: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("".join(line + "\n" for line in lines))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def hear(self) -> list[str]:
        """The next line in words; empty when the node is dead."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def jobs(self) -> list[tuple[str, str]]:
        self.tell("dump")
        found = []
        while words := self.hear():
            if words[0] == "job":
                found.append((words[1], words[2]))
        return found


@contextmanager
def node(directory: Path, die_at: int = ALIVE) -> Iterator[Node]:
    started = Node(directory, die_at)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate(timeout=30)


def live(directory: Path, die_at: int, job_id: str) -> list[str]:
    """One life with one submission; what the client heard, if anything."""
    with node(directory, die_at) as running:
        if running.hear() != ["ready"]:
            return []
        running.tell(f"{KEY.format(0)} {job_id}")
        return running.hear()


@pytest.mark.parametrize("first_dies_at", range(1, STEPS_OF_A_SUBMISSION + 1))
@pytest.mark.parametrize("second_dies_at", [2, ALIVE])
def test_killed_between_any_two_steps_there_is_one_job(
    tmp_path: Path, first_dies_at: int, second_dies_at: int
) -> None:
    heard = [
        live(tmp_path, first_dies_at, "job-1"),
        live(tmp_path, second_dies_at, "job-2"),
        live(tmp_path, ALIVE, "job-3"),
    ]
    assert heard[0] == []
    assert heard[2] != []
    told = {tuple(words) for words in heard if words}
    with node(tmp_path) as last:
        assert last.hear() == ["ready"]
        jobs = last.jobs()
    assert len(jobs) == 1
    key, job_id = jobs[0]
    assert told == {(key, job_id, f"accepted_{job_id}")}


def test_the_steps_counted_are_all_there_are(tmp_path: Path) -> None:
    assert live(tmp_path, STEPS_OF_A_SUBMISSION + 1, "job-1") != []


def test_killed_at_random_under_load_no_answer_changes_and_no_job_is_doubled(
    tmp_path: Path,
) -> None:
    dice = random.Random(4)
    keys = [KEY.format(number) for number in range(150)]
    told: dict[str, tuple[str, str]] = {}
    for life in range(6):
        last = life == 5
        with node(tmp_path) as running:
            assert running.hear() == ["ready"]
            asked = [f"{key} job-{life}-{copy}-{key[8:11]}" for key in keys for copy in (0, 1)]
            dice.shuffle(asked)
            running.tell(*asked)
            answers_until_death = len(asked) if last else dice.randrange(1, len(asked) // 2)
            for _ in range(answers_until_death):
                key, job_id, answer = running.hear()
                assert told.setdefault(key, (job_id, answer)) == (job_id, answer)
    assert set(told) == set(keys)
    with node(tmp_path) as final:
        assert final.hear() == ["ready"]
        jobs = final.jobs()
    assert sorted(jobs) == sorted((key, job_id) for key, (job_id, _) in told.items())
