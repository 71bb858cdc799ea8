"""Where a worker's settings come from, and what is said about those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.config.sections import Reading, Sources
from hyperscale.errors import BadInput
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.worker.settings import WorkerSettings, sections, worker_settings
from hyperscale.runtime.host import Address


def read(
    flags: dict[str, object] | None = None,
    environ: dict[str, str] | None = None,
    **tables: dict[str, object],
) -> WorkerSettings:
    given = {"id": "w1", "cluster": "shop", "env": "prod", "plaintext": True, **(flags or {})}
    return worker_settings(Reading(Sources(given, environ or {}, tables), sections()))


def test_a_flag_beats_the_environment_and_that_the_file() -> None:
    environ = {"HYPERSCALE_WORKER_CORES": "3", "HYPERSCALE_WORKER_FENCE_S": "5"}
    made = read({"cores": "2"}, environ, worker={"cores": 8, "fence-s": 4, "drain_s": 5})

    assert (made.cores, made.fence_s, made.drain_s) == (2, 5.0, 5.0)
    assert made.node.role == "worker"


def test_the_machine_says_how_many_cores_there_are() -> None:
    assert read().cores >= 1


def test_voters_in_the_file_it_shares_with_managers_are_not_its_business() -> None:
    assert read(node={"voters": ["m1", "m2"]}).node.voters == ()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"cores": "0"}, "cores takes 1 to 1024, not 0 (--cores is 0)"),
        ({"cores": "many"}, "--cores takes a whole number, not 'many'"),
        ({"memory_mb": "-1"}, "--memory-mb takes nothing below zero"),
        ({"set": ["worker.fence_s=0"]}, "fence_s must be above zero, not 0"),
        ({"set": ["worker.fence_s=1.5"]}, "before it has missed two answers"),
        ({"set": ["worker.fence_s=7"]}, "but a worker that is cut off may run for 8 s"),
        ({"set": ["jobs.retries_max=1"]}, "--set jobs has no setting 'retries_max'"),
    ],
)
def test_what_cannot_be_used_is_named(flags: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read(flags)
    assert sentence in refusal.value.message


def test_a_longer_fence_needs_managers_that_wait_longer() -> None:
    made = read({"set": ["worker.fence_s=20"]}, jobs={"reschedule_s": 22})
    assert made.fence_s == 20.0


def test_an_unknown_setting_of_the_file_is_named() -> None:
    with pytest.raises(BadInput, match=r"hyperscale.toml: \[worker\] has no setting 'fence'"):
        read(worker={"fence": 3})


def test_a_worker_has_the_role_of_one() -> None:
    node = NodeSettings(id="m1", bind=Address("127.0.0.1", 7000), data=Path("x"), role="manager")
    with pytest.raises(BadInput, match="has the role 'manager'"):
        WorkerSettings(node=node, cores=1)
