"""The operators' page is held to the program: settings, their values, metrics and paths."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import hyperscale
from hyperscale.config.sections import Reading, Section, Sources
from hyperscale.nodes.manager.settings import SECTIONS as MANAGER_SECTIONS
from hyperscale.nodes.member.metrics_page import LIVE, READY
from hyperscale.nodes.worker.settings import SECTION as WORKER
from hyperscale.nodes.worker.settings import sections as worker_sections

DOCS = Path(__file__).parents[3] / "docs"
SOURCE = Path(hyperscale.__file__).parent
PAGE = (DOCS / "operating.md").read_text()
BY_TITLE = {one.name.capitalize(): one for one in MANAGER_SECTIONS} | {"Worker": WORKER}


def stated(title: str) -> dict[str, str]:
    """Names and values of the table under a heading."""
    section = PAGE.partition(f"### {title}\n")[2].partition("\n#")[0]
    found: dict[str, str] = {}
    for names, values in re.findall(r"^\| (`.+?) \| (.+?) \|", section, re.MULTILINE):
        found |= dict(zip(re.findall(r"`(\w+)`", names), values.split(", "), strict=True))
    return found


@pytest.mark.parametrize("title", ["Manager", "Jobs", "Worker"])
def test_every_setting_is_explained_with_its_value(title: str) -> None:
    expected = values(BY_TITLE[title])
    if title == "Worker":
        expected |= {"cores": "all usable", "sandbox": "`auto`", "run_as": "none"}
    assert stated(title) == expected


def values(section: Section) -> dict[str, str]:
    return {
        name: f"{value:g}" if type(value) in (int, float) else f"`{value}`".lower()
        for name, value in section.defaults.items()
    }


@pytest.mark.parametrize("page", ["operating.md", "cluster.md"])
def test_files_that_are_shown_can_be_read_by_all_nodes(page: str) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.DOTALL)
    assert blocks
    for block in blocks:
        for sections in (MANAGER_SECTIONS, worker_sections()):
            rows = Reading(Sources(document=tomllib.loads(block)), sections).rows()
            assert any(row.origin.startswith("hyperscale.toml") for row in rows)


def test_metrics_that_are_named_exist() -> None:
    files = ("nodes/manager/gauges.py", "nodes/worker/gauges.py", "nodes/member/report.py")
    source = "".join((SOURCE / file).read_text() for file in files)
    named = set(re.findall(r"`hyperscale_(\w+)", PAGE))
    assert len(named) > 15
    assert {name for name in named if f'"{name}"' not in source} == set()


def test_paths_that_are_named_exist() -> None:
    files = ("nodes/manager/gauges.py", "nodes/worker/gauges.py")
    source = "".join((SOURCE / file).read_text() for file in files)
    paths = set(re.findall(r"`(/[a-z/]+)`", PAGE))
    assert {LIVE, READY, "/metrics"} <= paths
    debug = {path for path in paths if path.startswith("/debug/")}
    assert len(debug) >= 5
    assert {path for path in debug if f'"{path}"' not in source} == set()
