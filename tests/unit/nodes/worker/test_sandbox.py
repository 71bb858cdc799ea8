"""What a worker does about files of the system that are replaced under its generators."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hyperscale.engine.generators import GeneratorProcess
from hyperscale.nodes.worker import sandbox
from hyperscale.nodes.worker.engine_runner import EngineRunner


def test_a_file_that_is_replaced_is_noticed_and_one_that_is_written_to_is_not(
    tmp_path: Path,
) -> None:
    names = tmp_path / "resolv.conf"
    names.write_text("nameserver 192.0.2.1")
    before = sandbox._identities([str(names)])
    names.write_text("nameserver 192.0.2.2")
    assert sandbox._identities([str(names)]) == before
    (tmp_path / "new").write_text("nameserver 192.0.2.3")
    (tmp_path / "new").rename(names)
    assert sandbox._identities([str(names)]) != before
    names.unlink()
    assert sandbox._identities([str(names)]) == [None]


def test_generators_in_reserve_are_replaced_when_they_are_outdated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[GeneratorProcess] = []

    def start() -> GeneratorProcess:
        made.append(GeneratorProcess())
        return made[-1]

    class Refused(Exception):
        pass

    def refuse(*_: Any) -> None:
        raise Refused

    async def story() -> None:
        runner = EngineRunner(1, start, outdated=lambda: True)
        await runner.open()
        (old,) = made
        monkeypatch.setattr("hyperscale.nodes.worker.engine_runner.EnginePart", refuse)
        order = type("Order", (), {"part": type("Part", (), {"job_id": "j"})})()
        monkeypatch.setattr(runner.sealing, "open_order", lambda given: given)
        with pytest.raises(Refused):
            runner.run(order, (0,), lambda *_: None)  # type: ignore[arg-type]
        assert runner._by_slot["j", 0] is not old
        runner._by_slot["j", 0].kill_and_wait()
        await runner.close()
        for core in made:
            assert await asyncio.to_thread(core._child.wait, 30.0) is not None

    asyncio.run(story())
