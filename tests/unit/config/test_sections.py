"""Three places for a setting, and who said what."""

from __future__ import annotations

import string
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.config.sections import Reading, Section, Sources
from hyperscale.config.values import converted
from hyperscale.errors import BadInput
from hyperscale.nodes.manager import settings as manager
from hyperscale.nodes.member import settings as member
from hyperscale.nodes.worker import settings as worker

JOBS = Section("jobs", {"retries_max": 3, "wait_s": 8.0, "eager": True})
NODE = Section("node", {"id": "", "seed": (), "plaintext": False}, ("id", "seed", "plaintext"))
INNER = Section("node.inner", {"pause_s": 1.0})


def read(
    flags: dict[str, object] | None = None,
    environ: dict[str, str] | None = None,
    sections: Iterable[Section] = (NODE, INNER, JOBS),
    **tables: object,
) -> Reading:
    return Reading(Sources(flags or {}, environ or {}, tables, "my.toml"), sections)


def test_every_value_says_who_set_it() -> None:
    reading = read(
        {"id": "a", "set": ["jobs.wait_s=2"]},
        {"HYPERSCALE_NODE_SEED": "x, y", "HYPERSCALE_NODE_INNER_PAUSE_S": "4"},
        jobs={"retries-max": 1},
    )

    assert {row.name: (row.value, row.origin) for row in reading.rows()} == {
        "node.id": ("a", "--id"),
        "node.seed": ("x, y", "HYPERSCALE_NODE_SEED"),
        "node.plaintext": ("no", "default"),
        "inner.pause_s": ("4", "HYPERSCALE_NODE_INNER_PAUSE_S"),
        "jobs.retries_max": ("1", "my.toml: [jobs] retries-max"),
        "jobs.wait_s": ("2", "--set jobs.wait_s"),
        "jobs.eager": ("yes", "default"),
    }


def test_the_strongest_place_counts() -> None:
    environ = {"HYPERSCALE_JOBS_WAIT_S": "2", "HYPERSCALE_JOBS_RETRIES_MAX": "2"}
    reading = read({"set": ["jobs.wait_s=3"]}, environ, jobs={"wait_s": 1, "eager": False})

    said = {name: reading.of("jobs", name).value for name in JOBS.defaults}
    assert said == {"wait_s": 3.0, "retries_max": 2, "eager": False}


@pytest.mark.parametrize(
    ("environ", "tables", "sentence", "hint"),
    [
        (
            {"HYPERSCALE_JOBS_RETRY_MAX": "1"}, {},
            "HYPERSCALE_JOBS_RETRY_MAX is not a setting",
            "did you mean 'HYPERSCALE_JOBS_RETRIES_MAX'?",
        ),
        (
            {}, {"jobs": {"retry_max": 1}},
            "my.toml: [jobs] has no setting 'retry_max'", "did you mean 'retries_max'?",
        ),
        ({}, {"job": {}}, "my.toml has a table [job], which nobody reads", "did you mean [jobs]?"),
        ({}, {"jobs": 3}, "my.toml: 'jobs' is a table", "write [jobs]"),
        ({}, {"node": {"inner": 3}}, "my.toml: 'inner' is a table", "write [node.inner]"),
        (
            {"HYPERSCALE_JOBS_WAIT_S": "soon"}, {},
            "HYPERSCALE_JOBS_WAIT_S takes a number, not 'soon'", "",
        ),
        (
            {}, {"jobs": {"retries_max": 2.5}},
            "my.toml: [jobs] retries_max takes a whole number, not 2.5", "",
        ),
        ({}, {"jobs": {"wait_s": True}}, "my.toml: [jobs] wait_s takes a number, not True", ""),
        ({}, {"node": {"seed": 3}}, "my.toml: [node] seed takes a list of texts, not 3", ""),
        ({}, {"node": {"id": []}}, "my.toml: [node] id takes text, not []", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_with_its_place(
    environ: dict[str, str], tables: dict[str, object], sentence: str, hint: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        read({}, environ, **tables)
    assert (refusal.value.message, refusal.value.hint) == (sentence, hint)


def test_what_belongs_to_others_is_left_alone() -> None:
    links = {
        "HYPERSCALE_JOBS_SERVICE_HOST": "10.0.0.1",
        "HYPERSCALE_JOBS_SERVICE_PORT_HTTP": "80",
        "HYPERSCALE_JOBS_PORT": "tcp://10.0.0.1:80",
        "HYPERSCALE_JOBS_PORT_80_TCP_ADDR": "10.0.0.1",
    }
    others = {"HYPERSCALE_VUS": "3", "HYPERSCALE_JOBS_WAIT_S": "", "HYPERSCALE_JOB_ID": "x"}

    rows = read({}, links | others, run={"vus": 3}, scheduler={"slots": 1}).rows()

    assert {row.origin for row in rows} == {"default"}


def test_names_of_another_role_may_be_written_but_are_not_used() -> None:
    some = JOBS.only("wait_s")
    reading = read({}, {"HYPERSCALE_JOBS_RETRIES_MAX": "1"}, [some], jobs={"eager": False})

    assert [row.name for row in reading.rows()] == ["jobs.wait_s"]
    with pytest.raises(BadInput, match="no setting 'eager'"):
        read({"set": ["jobs.eager=no"]}, {}, [some])


def test_settings_that_do_not_fit_together_name_their_places() -> None:
    def picky(retries_max: int, wait_s: float, eager: bool) -> None:
        raise ValueError("wait_s must be longer")

    reading = read({"set": ["jobs.wait_s=3"]}, {"HYPERSCALE_JOBS_EAGER": "no"})
    with pytest.raises(BadInput) as refusal:
        reading.build("jobs", picky)
    assert refusal.value.message == (
        "the jobs settings cannot be used: wait_s must be longer (--set jobs.wait_s is 3.0)"
    )


def test_secrets_are_not_shown() -> None:
    section = Section("scheduler", {"password": "", "store": ""}, secret=frozenset({"password"}))
    environ = {
        "HYPERSCALE_SCHEDULER_PASSWORD": "hunter2",
        "HYPERSCALE_SCHEDULER_STORE": "redis://me:hunter2@h:1/0",
    }
    rows = [row.value for row in read({}, environ, [section]).rows()]
    assert rows == ["***", "redis://***@h:1/0"]
    environ["HYPERSCALE_SCHEDULER_STORE"] = (
        "postgres://h/db?user=me&password=hunter2&sslmode=require"
    )
    rows = [row.value for row in read({}, environ, [section]).rows()]
    assert rows == ["***", "postgres://h/db?user=me&password=***&sslmode=require"]


@pytest.mark.parametrize("sections", [member.SECTIONS, manager.SECTIONS, worker.sections()])
def test_names_are_unambiguous(sections: tuple[Section, ...]) -> None:
    names = [section.name for section in sections]
    assert len(set(names)) == len(names)
    variables = [section.prefix + name.upper() for section in sections for name in section.defaults]
    assert len(set(variables)) == len(variables)


def refusal_of(default: object, value: object) -> str:
    try:
        read_as = converted("--x", default, value)
    except BadInput as refusal:
        return refusal.message
    assert type(read_as) is type(default)
    return ""


@given(st.one_of(st.text(string.printable), st.integers(), st.floats(), st.booleans(), st.none()))
def test_any_value_is_read_or_refused_in_words(value: object) -> None:
    for default in (3, 1.0, True, "", ()):
        assert refusal_of(default, value)[:10] in ("", "--x takes ")
