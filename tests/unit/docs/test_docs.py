"""The documentation is held to the program: code loads and runs, links lead somewhere, names exist.

A page's blocks read as one file: what an earlier block imports or assigns, a later one may use.
The embedded target stands at the address that the pages use.
"""

from __future__ import annotations

import ast
import asyncio
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from hyperscale.cli.app import app
from hyperscale.clients.http.verbs import Verbs
from hyperscale.config.file import CONFIG_FILE
from hyperscale.config.run import SECTION as RUN
from hyperscale.config.run import filled_by
from hyperscale.config.sections import NOT_SETTINGS, Section, sources_of
from hyperscale.engine.run import LocalRun, RunOptions
from hyperscale.engine.source import FileSource
from hyperscale.errors import ExitCode
from hyperscale.metrics.histogram import LATENCY
from hyperscale.nodes.client.settings import SECTION as CLUSTER
from hyperscale.nodes.gate.settings import SECTIONS as GATE
from hyperscale.nodes.manager.settings import SECTIONS as MANAGER
from hyperscale.nodes.worker.settings import SECTION as WORKER
from hyperscale.scheduler.http.settings import SECTIONS as SCHEDULER
from hyperscale.target import running
from hyperscale.target.echo import Echo
from hyperscale.workload import load_settings
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.loading import load_workflows
from hyperscale.workload.plan import Overrides, WorkflowPlan, plan_test
from hyperscale.workload.results import WITHOUT_LATENCY, Outcome
from hyperscale.workload.thresholds import METRICS
from tests.fixtures.echo import echoing
from tests.unit.docs import cli_page

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.rglob("*.md")),
]
# Pages for people who change Hyperscale; on the others a path may be of the reader's own.
MAPS = [
    ROOT / "CONTRIBUTING.md",
    DOCS / "architecture.md",
    DOCS / "where.md",
    *sorted(DOCS.glob("decisions/*.md")),
]
PACKAGE = ROOT / "src" / "hyperscale"
SPLIT = ("nodes", "scheduler", "ledger", "cluster")  # rooms whose folders are rooms themselves
BASES = (ROOT, PACKAGE, DOCS)
ENOUGH_ITERATIONS = 20  # for a step that runs in one of five
SHOWN_TARGET = "http://127.0.0.1:8080"
ALL_SECTIONS = (RUN, CLUSTER, WORKER, *MANAGER, *GATE, *SCHEDULER)
OTHER_PROGRAMS = ("k6", "locust", "make", "pip", "pytest", "python", "ulimit", "wrk")

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_INSTALLED = re.compile(r"pip install\s+(?:-\S+\s+)*['\"]?hyperscale(?![-_]loadtest)")
_FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*/(?:[\w-]+\.py)?|[\w.-]+(?:/[\w.-]+)+|\w+\.py")
_OURS = re.compile(r"(?:src|tests|benchmarks|deploy|engine|nodes|cluster|ledger)/.+\.py$")
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return [text for info, text in _BLOCK.findall(page.read_text()) if info.strip() == language]


def python_of(page: Path) -> str:
    """The blocks of a page as one file."""
    return "\n\n".join(blocks(page, "python"))


def pages_with_workflows() -> list[Path]:
    return [page for page in PAGES if "(Workflow):" in python_of(page)]


def code_of(page: Path) -> Iterator[str]:
    """Commands and flags as a reader would type them."""
    text = page.read_text()
    for info, block in _BLOCK.findall(text):
        if info.strip() in ("", "sh", "yaml"):
            for line in block.splitlines():
                typed = line.strip().removeprefix("- ").removeprefix("run:")
                yield typed.partition("  #")[0].strip()
    yield from (span.strip() for span in _SPAN.findall(_BLOCK.sub("", text)))


@cache
def flags_by_command() -> dict[str, frozenset[str]]:
    group: Any = typer.main.get_command(app)
    known = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in group.commands.items()
    }
    own = {option for parameter in group.params for option in parameter.opts} | {"-h", "--help"}
    return {
        "": frozenset(own.union(*known.values())),
        **{name: frozenset(options | own) for name, options in known.items()},
    }


def flags_in(code: str) -> tuple[str, list[str]]:
    """The command a line or span belongs to ("" for none), and the flags in it."""
    try:
        words = shlex.split(code)
    except ValueError:
        words = code.split()
    if not words or words[0] in OTHER_PROGRAMS:
        return "", []
    is_command = words[0] == "hyperscale" and len(words) > 1
    command = words[1] if is_command and words[1] in flags_by_command() else ""
    if not is_command and not code.startswith("-"):
        return "", []
    return command, [found[0] for word in words if (found := _FLAG.match(word))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_are_python(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block, name_of(page), "exec")


def test_quoted_examples_are_the_files() -> None:
    quoted = [
        (page, info.rpartition("title=")[2], text)
        for page in PAGES
        for info, text in _BLOCK.findall(page.read_text())
        if "title=examples/" in info
    ]
    for page, file, text in quoted:
        assert text == (ROOT / file).read_text(), (name_of(page), file)
    assert {page for page, _, _ in quoted} >= set(DOCS.glob("migrating-*.md"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_imported_names_exist(page: Path) -> None:
    for statement in ast.parse(python_of(page)).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([statement], []), name_of(page), "exec"), {})


@pytest.mark.parametrize("page", pages_with_workflows(), ids=name_of)
def test_workflows_can_be_planned_without_a_warning(page: Path, tmp_path: Path) -> None:
    plan = plan_test(load_workflows(str(written(page, tmp_path, SHOWN_TARGET))))

    assert plan.workflows
    assert not plan.warnings


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with running() as url:
        yield url


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    with echoing() as made:
        yield made


@pytest.mark.parametrize("page", pages_with_workflows(), ids=name_of)
def test_workflows_run(
    page: Path, tmp_path: Path, target: str, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHO", f"127.0.0.1:{echo.port}")
    file = written(page, tmp_path, target)
    iterations = 1 if "think_time" in file.read_text() else ENOUGH_ITERATIONS
    load = Overrides(vus=1, iterations=iterations, no_thresholds=True)
    local_run = LocalRun(FileSource(str(file)), load, RunOptions(workers=1, seed=1))

    results = asyncio.run(local_run.execute())

    assert results.exit_code == ExitCode.PASSED, results.cut_reason
    plan = plan_test(load_workflows(str(file)))
    for workflow in results.workflows:
        left_out = may_be_left_out(plan.workflow(workflow.name))
        for step in workflow.steps:
            assert step.count >= 1 or step.name in left_out, step.name
            assert (step.failed, step.runs_failed) == (0, 0), (step.name, step.errors)
        for check in workflow.checks:
            assert check.failed == 0, (check.name, check.samples)


def may_be_left_out(plan: WorkflowPlan) -> set[str]:
    """Steps that a single iteration need not come to."""
    return {step.name for step in plan.steps if plan.flow or not step.choice.is_plain}


def written(page: Path, folder: Path, target: str) -> Path:
    """The page's Python as a test file beside the data it reads."""
    shutil.copy(ROOT / "examples" / "users.csv", folder)
    host, _, port = target.removeprefix("http://").partition(":")
    source = python_of(page).replace(SHOWN_TARGET, target)
    source = source.replace('"127.0.0.1", 8080', f'"{host}", {port}')
    file = folder / f"shown_in_{re.sub('[^a-z]', '_', name_of(page).lower())}.py"
    file.write_text(source)
    return file


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_BLOCK.sub("", page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), link
        assert goal.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors_of(goal), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    text = _BLOCK.sub("", page.read_text())
    named = [span for span in _SPAN.findall(text) if _FILE.fullmatch(span)]
    if page not in MAPS:
        named = [name for name in named if _OURS.match(name)]
    missing = [name for name in named if not any((base / name).exists() for base in BASES)]
    assert not missing


def test_every_room_is_on_the_plan() -> None:
    plan = blocks(DOCS / "architecture.md", "")[0]
    rooms = [file.parent for file in PACKAGE.glob("*/__init__.py")]
    below = [file.parent for room in SPLIT for file in (PACKAGE / room).glob("*/__init__.py")]
    assert {f"{room.name}/" for room in (*rooms, *below)} <= set(re.findall(r"\w+/", plan))


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_flags_exist(page: Path) -> None:
    for code in code_of(page):
        command, flags = flags_in(code)
        for flag in flags:
            assert flag in flags_by_command()[command], code


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings_of_the_environment_exist(page: Path) -> None:
    refused = re.compile(r"^error: .*$", re.MULTILINE)
    named = re.findall(r"\bHYPERSCALE_[A-Z_]+[A-Z]\b", refused.sub("", page.read_text()))
    for variable in {*named} - NOT_SETTINGS:
        assert any(variable in variables_of(section) for section in ALL_SECTIONS), variable


def variables_of(section: Section) -> set[str]:
    return {section.prefix + name.upper() for name in section.defaults}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_yaml_blocks_are_yaml(page: Path) -> None:
    for block in blocks(page, "yaml"):
        assert yaml.safe_load(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_config_files_can_be_read(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        tomllib.loads(block)
        file = tmp_path / CONFIG_FILE
        file.write_text(block)
        filled_by(sources_of({"config": str(file)}, {}))


def test_no_page_installs_the_distribution_of_somebody_else() -> None:
    for page in (*PAGES, *ROOT.glob("deploy/**/*.md")):
        assert not _INSTALLED.search(page.read_text()), name_of(page)


def test_extras_are_named_after_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = {f"{project['name']}[{extra}]" for extra in project["optional-dependencies"]}
    named = {
        name
        for file in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"\bhyperscale[\w-]*\[\w+\]", file.read_text())
    }
    assert named <= known


def test_every_page_is_on_the_map() -> None:
    links = {link.partition("#")[0] for link in _LINK.findall((DOCS / "index.md").read_text())}
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}
    assert pages <= links


def test_the_page_of_the_commands_is_current() -> None:
    assert cli_page.PAGE.read_text() == cli_page.page(), "make docs writes it"
    assert "|  |" not in cli_page.page(), "an option without a line of help"


def test_every_load_setting_is_explained() -> None:
    assert set(load_settings.NAMES) <= first_cells(DOCS / "load-models.md")


def test_every_http_option_is_explained() -> None:
    assert set(HTTPOptions.__struct_fields__) <= first_cells(DOCS / "http.md")


def test_every_argument_of_a_call_is_explained() -> None:
    arguments = set(Verbs.request.__annotations__) - {"method", "url", "return"}
    assert arguments <= first_cells(DOCS / "http.md")


def test_every_outcome_is_explained_with_whether_it_is_a_latency() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (yes|no) \|$", text_of("http.md"), re.MULTILINE))
    without = {*WITHOUT_LATENCY, Outcome.EXCEPTION}
    assert rows == {outcome: "no" if outcome in without else "yes" for outcome in Outcome}


def test_every_metric_of_a_threshold_is_explained() -> None:
    assert set(METRICS) <= first_cells(DOCS / "thresholds.md")


def test_every_exit_code_is_explained() -> None:
    section = text_of("thresholds.md").partition("## Exit codes")[2]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)} == set(
        ExitCode
    )


def test_the_stated_histogram_is_the_one_in_use() -> None:
    assert f"{LATENCY.size:,} buckets" in text_of("latency.md")
    assert f"{LATENCY.edges[-1] / 60:.0f} minutes" in text_of("latency.md")


def text_of(page: str) -> str:
    return (DOCS / page).read_text()


def first_cells(page: Path) -> set[str]:
    """Names in the first column of the page's tables."""
    cells = re.findall(r"^\| ((?:[^|\n]|\\\|)+) \|", page.read_text(), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
