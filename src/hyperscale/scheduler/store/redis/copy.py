"""What is known of a Redis while a batch of steps runs: what was fetched, and what the steps before
wrote.

Steps run on this copy until none of them lacks anything. What a claim brought is taken for known
(`Recent`): the commit checks it as it checks everything that was read. A line of instances is
fetched no later than the instances in it, and tokens are drawn after everything else: whoever is
faster either changes something that was read, or got a smaller token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hyperscale.scheduler.store.redis import keys

Place = tuple[str, str]
"""(hash, field)"""
Command = tuple[Any, ...]
"""(name, key without its prefix, argument, ...)"""


RECENT_MAX: Final = 4096
"""Halves of jobs: what a few workers hold."""
FIELDS_PER_COMMAND_MAX: Final = 1000
"""A script hands a command's arguments over on Lua's stack, which takes 8,000."""


class Missing(Exception):
    """The copy lacks something a step asked for; it has been noted."""


class Recent:
    """Jobs as claims brought them, for the report that follows, each used once: if it is no longer
    true by then, the second try asks Redis."""

    def __init__(self) -> None:
        self._fields: dict[Place, bytes] = {}

    def put(self, job_id: str, head: bytes, run: bytes) -> None:
        self._fields[keys.HEADS, job_id] = head
        self._fields[keys.RUNS, job_id] = run
        while len(self._fields) > RECENT_MAX:
            del self._fields[next(iter(self._fields))]

    def take(self, place: Place) -> bytes | None:
        return self._fields.pop(place, None) if self._fields else None


def _size_of(name: str) -> str:
    return "ZCARD" if name == keys.DONE else "HLEN"


class Copy:
    def __init__(self, recent: Recent) -> None:
        self._recent = recent
        self.trusted = False
        """Whether something is known from `recent` only."""
        self.trips = 0
        self._fields: dict[Place, bytes | None] = {}
        self._lives: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}
        self._tokens: list[int] = []
        self._wanted_fields: set[Place] = set()
        self._wanted_lives: set[str] = set()
        self._wanted_sizes: set[str] = set()
        self._wanted_tokens = 0
        self.restart()

    def restart(self) -> None:
        """Forget what steps wrote: they run again."""
        self._written: dict[Place, bytes | None] = {}
        self._joined: list[tuple[str, str]] = []
        self._grown: dict[str, int] = {}
        self._tokens_used = 0

    def keep(
        self,
        written: dict[Place, bytes | None],
        joined: Sequence[tuple[str, str]],
        grown: dict[str, int],
    ) -> None:
        """A step is through; those after it see what it wrote."""
        self._written.update(written)
        self._joined.extend(joined)
        for name, amount in grown.items():
            self._grown[name] = self._grown.get(name, 0) + amount

    def field(self, place: Place, *together: Place) -> bytes | None:
        """`together` is fetched in the same trip, if this has to be."""
        if place in self._written:
            return self._written[place]
        if place not in self._fields and not self._trust(place, *together):
            self._wanted_fields.update((place, *together))
            raise Missing
        return self._fields[place]

    def _trust(self, *places: Place) -> bool:
        values = [self._recent.take(place) for place in places]
        if None in values:
            return False
        self._fields.update(zip(places, values, strict=True))
        self.trusted = True
        return True

    def live(self, schedule_id: str) -> list[str]:
        if schedule_id not in self._lives:
            self._wanted_lives.add(schedule_id)
            raise Missing
        joined = [job_id for joined_id, job_id in self._joined if joined_id == schedule_id]
        return self._lives[schedule_id] + joined

    def size(self, name: str) -> int:
        if name not in self._sizes:
            self._wanted_sizes.add(name)
            raise Missing
        return self._sizes[name] + self._grown.get(name, 0)

    def token(self) -> int:
        if self._tokens_used == len(self._tokens):
            self._wanted_tokens += 1
            raise Missing
        self._tokens_used += 1
        return self._tokens[self._tokens_used - 1]

    def lacks(self) -> list[Command]:
        """Commands that fetch what steps asked for; empty when they had everything."""
        by_table: dict[str, list[str]] = {}
        for table, field in sorted(self._wanted_fields):
            by_table.setdefault(table, []).append(field)
        if keys.RUNS in by_table and keys.RUNS not in self._sizes:
            # Who asks for a job and does not find it asks next whether there is room for it.
            self._wanted_sizes.update((keys.RUNS, keys.DONE))
        commands: list[Command] = [
            *(
                ("HMGET", table, *wanted[start : start + FIELDS_PER_COMMAND_MAX])
                for table, wanted in by_table.items()
                for start in range(0, len(wanted), FIELDS_PER_COMMAND_MAX)
            ),
            *(
                ("ZRANGEBYLEX", keys.LIVE, *keys.under_all(schedule_id))
                for schedule_id in sorted(self._wanted_lives)
            ),
            *((_size_of(name), name) for name in sorted(self._wanted_sizes)),
        ]
        if not commands and self._wanted_tokens:
            amount = len(self._tokens) + self._wanted_tokens
            commands.append(("HINCRBY", keys.COUNTERS, keys.TOKENS, amount))
        return commands

    def learn(self, commands: Sequence[Command], answers: Sequence[Any]) -> None:
        for (command, name, *arguments), answer in zip(commands, answers, strict=True):
            if command == "HMGET":
                for field, value in zip(arguments, answer, strict=True):
                    self._fields[name, field] = value
            elif command in ("HLEN", "ZCARD"):
                self._sizes[name] = answer
        lives = [
            answer
            for command, answer in zip(commands, answers, strict=True)
            if command[0] == "ZRANGEBYLEX"
        ]
        for schedule_id, members in zip(sorted(self._wanted_lives), lives, strict=True):
            self._lives[schedule_id] = [keys.under_id(member) for member in members]
        # Tokens drawn before this trip may be older than what it brought.
        self._tokens = []
        if commands[-1][0] == "HINCRBY":
            amount = commands[-1][3]
            self._tokens = list(range(answers[-1] - amount + 1, answers[-1] + 1))
        self._wanted_fields.clear()
        self._wanted_lives.clear()
        self._wanted_sizes.clear()
        self._wanted_tokens = 0
        self.trips += 1
