"""A dev cluster that cannot run says why, once, and before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.cli.dev_cluster import Plan, check_settings, make_credentials
from hyperscale.errors import BadInput

PLAN = Plan(managers=2, workers=1, cores=1, port=27_100)


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        ("[node]\nbogus = 1", "has no setting 'bogus'"),
        ("[manager]\nwindow_s = 0", "window_s must be above zero"),
        ("[node.membership]\ngossip_interval_s = 0", "takes seconds above zero, not 0"),
        ("[worker]\nflush_s = -1", "takes nothing below zero"),
    ],
)
def test_a_bad_file_is_found_before_the_nodes_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = PLAN.nodes(tmp_path / "dev")
    make_credentials(tmp_path / "dev", nodes)
    check_settings(nodes)
    Path("hyperscale.toml").write_text(file)
    with pytest.raises(BadInput, match=complaint):
        check_settings(nodes)


def test_flags_are_what_the_command_would_read(tmp_path: Path) -> None:
    manager, _, worker = PLAN.nodes(tmp_path)
    assert manager.flags()["voters"] == "m1,m2"
    assert manager.flags()["seed"] == ["127.0.0.1:27100", "127.0.0.1:27101"]
    assert worker.flags()["cores"] == "1"
    assert worker.flags()["bind"] == "127.0.0.1:27102"


def test_what_nodes_have_sealed_on_disk_is_read_after_a_restart(tmp_path: Path) -> None:
    secrets = [tmp_path / "secret", tmp_path / "manager-secret"]
    make_credentials(tmp_path, PLAN.nodes(tmp_path))
    first = [place.read_bytes() for place in secrets]
    make_credentials(tmp_path, PLAN.nodes(tmp_path))
    assert [place.read_bytes() for place in secrets] == first
    assert len(set(first)) == 2
