"""Commands to the slices of one part, each on its generator process, and their answers.

A command that is asked ends with one answer, or with None when the generator died. A generator
that does not answer in time is killed, unless other parts have slices on it: then only this part
leaves it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hyperscale.engine.generators import GeneratorProcess, OnLost, OnReport
from hyperscale.engine.messages import Command, Report

GLANCE_S = 0.5

Answer = asyncio.Future[Report | None]


class SliceCommands:
    def __init__(self, generators: Sequence[GeneratorProcess], on_lost: OnLost) -> None:
        self._generators = generators
        self._on_lost = on_lost
        self._numbers: dict[GeneratorProcess, int] = {}  # of this part's slice there
        self._answers: dict[GeneratorProcess, Answer] = {}
        self.overdue = False  # generators were killed because they did not answer

    def join(self, on_report: OnReport) -> None:
        for generator in self._generators:
            self._numbers[generator] = generator.join(on_report, self._on_lost)

    @property
    def joined(self) -> list[GeneratorProcess]:
        return list(self._numbers)

    def leave(self, generator: GeneratorProcess) -> None:
        generator.leave(self._numbers.pop(generator))

    def tell(self, generator: GeneratorProcess, command: Command) -> None:
        if generator in self._numbers:
            generator.send(self._numbers[generator], command)

    def tell_all(self, command: Command) -> None:
        for generator in self._answers:  # those that have been asked something
            self.tell(generator, command)

    def ask(self, commands: Sequence[Command], of: Sequence[GeneratorProcess]) -> list[Answer]:
        """One command to each; their answers come later."""
        loop = asyncio.get_running_loop()
        for generator, command in zip(of, commands, strict=True):
            self._answers[generator] = loop.create_future()
            if generator.lost:
                self._on_lost(generator)
                self.without_answer(generator)
            self.tell(generator, command)
        return [self._answers[generator] for generator in of]

    async def wait(
        self, pending: Sequence[Answer], limit_s: float, paused: Callable[[], bool]
    ) -> list[Report | None]:
        """All of these answers; time while `paused` does not count."""
        left_s = limit_s
        while pending and left_s > 0 and (await asyncio.wait(pending, timeout=GLANCE_S))[1]:
            if not paused():
                left_s -= GLANCE_S
        self.overdue = self.overdue or left_s <= 0
        self.kill_unanswering()
        return [await answer for answer in pending]

    def answered(self, generator: GeneratorProcess, report: Report) -> None:
        self._answers[generator].set_result(report)

    def without_answer(self, generator: GeneratorProcess) -> None:
        answer = self._answers.get(generator)
        if answer is not None and not answer.done():
            answer.set_result(None)

    def kill_unanswering(self) -> None:
        for generator in self._generators:
            waiting = self._answers.get(generator)
            if waiting is not None and not waiting.done():
                self.kill(generator)

    def kill(self, generator: GeneratorProcess) -> None:
        """A process that others have users on is theirs: it is left to them."""
        if not generator.serves_others(self._numbers.get(generator)):
            generator.kill()
        elif generator in self._numbers:
            self.leave(generator)
            self._on_lost(generator)
        else:
            self.without_answer(generator)
