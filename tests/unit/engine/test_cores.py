"""How many cores may be used: container quotas count."""

import math
from pathlib import Path

import pytest

from hyperscale.engine import cores
from hyperscale.errors import BadInput
from hyperscale.runtime.cgroup import cpu_quota


def test_a_version_2_quota(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert cpu_quota(tmp_path) == 1.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert cpu_quota(tmp_path) == math.inf


def test_a_version_1_quota(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("300000")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000")
    assert cpu_quota(tmp_path) == 3.0
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1")
    assert cpu_quota(tmp_path) == math.inf


def test_threads_of_one_core_count_once(tmp_path: Path) -> None:
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        place = tmp_path / f"cpu{cpu}/topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(siblings)
    (tmp_path / "cpufreq").mkdir()
    assert cores._physical_cores(tmp_path) == 2


def test_there_is_always_a_core() -> None:
    assert cores.usable_cores() >= 1


def test_more_connections_than_open_files_are_refused_with_the_limit() -> None:
    with pytest.raises(BadInput, match="open only") as refusal:
        cores.require_open_files("Huge", 10_000_000)
    assert "ulimit -n" in refusal.value.hint
