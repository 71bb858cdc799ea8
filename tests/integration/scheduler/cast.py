"""Coordinators and workers in processes of their own; whoever is killed is replaced by another."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

STOP_DEADLINE_S = 60.0
TELL_S = 2.0


@dataclass(frozen=True)
class Player:
    role: str
    node: str
    slots: int
    process: subprocess.Popen[bytes]


class Cast:
    def __init__(self, store: str, election: str, directory: Path) -> None:
        self._store = store
        self._election = election
        self._directory = directory
        self._numbers = itertools.count(1)
        self.playing: list[Player] = []

    def enter(self, role: str, slots: int = 1) -> Player:
        node = f"{role}-{next(self._numbers)}"
        with (self._directory / f"{node}.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.integration.scheduler.fault_process"),
                    *(role, self._store, self._election, node, str(slots)),
                    str(self._directory / "spool"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
            )
        player = Player(role, node, slots, process)
        self.playing.append(player)
        return player

    def wait_ready(self) -> None:
        for player in self.playing:
            assert player.process.stdout is not None
            assert player.process.stdout.readline() == b"ready\n"

    def named(self, node: str) -> Player | None:
        return next((player for player in self.playing if player.node == node), None)

    def kill(self, player: Player) -> None:
        self.playing.remove(player)
        player.process.kill()
        player.process.wait()
        self.enter(player.role, player.slots)

    def stop(self) -> list[int]:
        """As an operator does; the exit codes."""
        for player in self.playing:
            player.process.send_signal(signal.SIGTERM)
        return [self._ended(player) for player in self.playing]

    def _ended(self, player: Player) -> int:
        try:
            return player.process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            player.process.send_signal(signal.SIGUSR1)
            with suppress(subprocess.TimeoutExpired):
                player.process.wait(TELL_S)
            words = (self._directory / f"{player.node}.log").read_text()
            raise AssertionError(
                f"{player.node} did not stop; its last words:\n{words[-9000:]}"
            ) from None

    def leave(self) -> None:
        for player in self.playing:
            player.process.kill()
            player.process.wait()
            if player.process.stdout is not None:
                player.process.stdout.close()


@contextmanager
def cast_of(
    store: str, election: str, directory: Path, coordinators: int, slots: tuple[int, ...]
) -> Iterator[Cast]:
    """`slots` of each worker."""
    cast = Cast(store, election, directory)
    try:
        for _ in range(coordinators):
            cast.enter("coordinator")
        for number in slots:
            cast.enter("worker", number)
        cast.wait_ready()
        yield cast
    finally:
        cast.leave()
