"""Where a worker's settings come from, and what is said about those that cannot be used."""

from __future__ import annotations

import pytest

from hyperscale.errors import BadInput
from hyperscale.nodes.member.settings import read_settings
from hyperscale.nodes.worker.settings import WorkerSettings, read_worker_settings


def read(
    flags: dict[str, object] | None = None,
    environ: dict[str, str] | None = None,
    table: dict[str, object] | None = None,
    role: str = "worker",
) -> WorkerSettings:
    node = read_settings({"id": "w1", "plaintext": True, "role": role}, {}, {})
    return read_worker_settings(node, flags or {}, environ or {}, table or {})


def test_a_flag_beats_the_environment_and_that_the_file() -> None:
    environ = {"HYPERSCALE_WORKER_CORES": "3", "HYPERSCALE_WORKER_FENCE_S": "7"}
    made = read({"cores": 2}, environ, {"cores": 8, "fence-s": 9, "drain_s": 5})

    assert (made.cores, made.fence_s, made.drain_s) == (2, 7.0, 5.0)


def test_the_machine_says_how_many_cores_there_are() -> None:
    assert read().cores >= 1


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"cores": 0}, "--cores takes 1 to"),
        ({"cores": "many"}, "takes a whole number, not 'many'"),
        ({"cores": 1, "fence_s": 0}, "fence_s must be above zero"),
        ({"cores": 1, "fence_s": 1.5}, "managers are told only every"),
        ({"cores": 1, "memory_mb": -1}, "--memory-mb takes nothing below zero"),
    ],
)
def test_what_cannot_be_used_is_named(flags: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        read(flags)


def test_an_unknown_setting_of_the_file_is_named() -> None:
    with pytest.raises(BadInput, match="no setting 'fence'"):
        read(table={"fence": 3})


def test_a_worker_has_the_role_of_one() -> None:
    with pytest.raises(BadInput, match="has the role 'manager'"):
        read({"cores": 1}, role="manager")
