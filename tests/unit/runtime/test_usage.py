"""What this process uses of what it may use, in a control group and without one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hyperscale.runtime.cgroup import memory_share
from hyperscale.runtime.usage import ProcessUsage

NONE = Path("/nowhere")


def put(folder: Path, **files: str | int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def version_2(folder: Path, limit: str | int, used: int, cache: int = 0) -> None:
    put(folder, memory__max=limit, memory__current=used)
    put(folder, memory__stat=f"anon {used - cache}\ninactive_file {cache}\nslab 5")


def version_1(folder: Path, limit: int, used: int, cache: int = 0) -> None:
    put(folder, memory__limit_in_bytes=limit, memory__usage_in_bytes=used)
    put(folder, memory__stat=f"inactive_file 1\ntotal_inactive_file {cache}\ntotal_active_file 0")


def test_the_limit_of_a_container(tmp_path: Path) -> None:
    version_2(tmp_path, 1_000, 700)
    assert memory_share(tmp_path, NONE) == 0.7


def test_page_cache_is_given_back_when_it_is_needed(tmp_path: Path) -> None:
    version_2(tmp_path, 1_000, 990, cache=600)
    assert memory_share(tmp_path, NONE) == 0.39
    version_1(tmp_path / "memory", 1_000, 990, cache=400)
    assert memory_share(tmp_path, NONE) == 0.59


def test_the_tightest_of_all_groups_around_counts(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    membership.write_text("1:cpu:/\n0::/apps/node\n")
    version_2(tmp_path / "apps", 1_000, 800)
    version_2(tmp_path / "apps" / "node", "max", 100)
    assert memory_share(tmp_path, membership) == 0.8
    version_2(tmp_path / "apps" / "node", 110, 99)
    assert memory_share(tmp_path, membership) == 0.9


def test_version_1_in_a_container_that_sees_only_its_own_group(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    membership.write_text("4:memory:/docker/0123\n0::/\n")
    version_1(tmp_path / "memory", 2_000, 1_000)
    assert memory_share(tmp_path, membership) == 0.5
    version_1(tmp_path / "memory", 9_223_372_036_854_771_712, 1_000)
    assert memory_share(tmp_path, membership) is None


def test_without_a_limit_it_is_our_own_of_what_is_left(tmp_path: Path) -> None:
    usage = ProcessUsage(tmp_path, NONE)
    assert memory_share(tmp_path, NONE) is None
    before = usage.read().memory
    assert before is not None
    assert 0.0 < before < 0.9, "whatever the other processes of this machine use"
    ballast = b"x" * 200_000_000
    after = usage.read().memory
    assert after is not None
    assert after > before
    del ballast


def test_cpu_is_what_this_process_used_of_its_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = {"monotonic": 100.0, "process_time": 5.0}
    told = {name: lambda name=name: clocks[name] for name in clocks}
    monkeypatch.setattr("hyperscale.runtime.usage.time", SimpleNamespace(**told))
    monkeypatch.setattr("hyperscale.runtime.usage.os.cpu_count", lambda: 4)
    usage = ProcessUsage(tmp_path, NONE)
    assert usage.read().cpu is None, "no time has passed"
    clocks |= {"monotonic": 102.0, "process_time": 6.0}
    assert usage.read().cpu == 0.125
    put(tmp_path, cpu__max="50000 100000")
    clocks |= {"monotonic": 104.0, "process_time": 6.9}
    assert usage.read().cpu == pytest.approx(0.9)


@pytest.mark.parametrize("text", ["", "nonsense", "-1"])
def test_files_that_make_no_sense_are_no_limit(tmp_path: Path, text: str) -> None:
    put(tmp_path, memory__max=text, memory__current="x")
    assert memory_share(tmp_path, NONE) is None
