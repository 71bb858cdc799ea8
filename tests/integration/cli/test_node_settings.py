"""Settings of nodes as an operator meets them: listed with who set them, refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.errors import ExitCode
from tests.integration.cli.program import assert_refused, hyperscale

FILE = """
[node]
voters = ["m1"]
cluster = "shop"
env = "prod"

[jobs]
queue-jobs-max = 7

[worker]
cores = 3
"""
PLAIN = ("--plaintext", "--seed", "127.0.0.1")


def shown(tmp_path: Path, *words: object, **env: str) -> dict[str, list[str]]:
    (tmp_path / "hyperscale.toml").write_text(FILE)
    ended = hyperscale(*words, *PLAIN, "--show-settings", cwd=tmp_path, **env)
    assert ended.code == ExitCode.PASSED, ended
    head, *rows = ended.out.splitlines()
    assert head.split() == ["SETTING", "VALUE", "FROM"]
    return {row.split()[0]: row.split()[1:] for row in rows}


def test_a_manager_lists_its_settings_and_who_set_them(tmp_path: Path) -> None:
    words = ("manager", "--id", "m1", "--set", "jobs.retries_max=1")
    rows = shown(tmp_path, *words, HYPERSCALE_MANAGER_WINDOW_S="0.5")

    assert rows["node.id"] == ["m1", "--id"]
    assert rows["node.cluster"] == ["shop", "hyperscale.toml:", "[node]", "cluster"]
    assert rows["jobs.queue_jobs_max"] == ["7", "hyperscale.toml:", "[jobs]", "queue-jobs-max"]
    assert rows["jobs.retries_max"] == ["1", "--set", "jobs.retries_max"]
    assert rows["manager.window_s"] == ["0.5", "HYPERSCALE_MANAGER_WINDOW_S"]
    assert rows["records.ping_s"] == ["1", "default"]
    assert "worker.cores" not in rows


def test_a_worker_reads_the_same_file(tmp_path: Path) -> None:
    rows = shown(tmp_path, "worker", "--id", "w1")

    assert rows["worker.cores"] == ["3", "hyperscale.toml:", "[worker]", "cores"]
    assert "node.voters" not in rows
    assert "jobs.queue_jobs_max" not in rows


def test_what_is_wrong_is_said_after_the_list(tmp_path: Path) -> None:
    ended = hyperscale("manager", "--id", "m1", "--env", "prod", "--show-settings", cwd=tmp_path)

    assert "node.id" in ended.out
    assert_refused(ended, "--cluster is missing: a node needs the cluster it belongs to")


@pytest.mark.parametrize(
    ("env", "word"),
    [
        ({"HYPERSCALE_JOBS_QUEUE_MAX": "1"}, "HYPERSCALE_JOBS_QUEUE_MAX is not a setting"),
        ({"HYPERSCALE_JOBS_JOBS_MAX": "x"}, "HYPERSCALE_JOBS_JOBS_MAX takes a whole number"),
        ({"HYPERSCALE_WORKER_FENCE_S": "30"}, "HYPERSCALE_WORKER_FENCE_S"),
    ],
)
def test_a_variable_that_cannot_be_is_named(env: dict[str, str], word: str, tmp_path: Path) -> None:
    words = (
        "manager",
        "--id",
        "m1",
        "--cluster",
        "c",
        "--env",
        "e",
        "--voters",
        "m1",
        "--plaintext",
    )
    assert_refused(hyperscale(*words, cwd=tmp_path, **env), word)
