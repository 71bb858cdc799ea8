"""Where a setting's value comes from, and what is said about a bad one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.config.file import find_file, read_document
from hyperscale.config.run import NAMES, Settings, filled_by, said_by
from hyperscale.config.sections import sources_of
from hyperscale.errors import BadInput


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hyperscale.toml"
    path.write_text(text)
    return path


def read(path: Path) -> Settings:
    return filled_by(sources_of({"config": str(path)}, {}))


def test_flags_not_given_say_nothing() -> None:
    assert said_by({"vus": None, "once": False, "out": [], "config": "x.toml"}, {}) == Settings()


def test_flag_values_are_read_by_their_type() -> None:
    settings = said_by(
        {"vus": "50", "once": True, "tag": ["a=1", "b=x=y"], "env": ["TEXT=two words"]}, {}
    )
    assert settings == Settings(
        vus=50, once=True, tag={"a": "1", "b": "x=y"}, env={"TEXT": "two words"}
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"vus": "abc"}, "--vus takes a whole number from 1, not 'abc'"),
        ({"vus": "0"}, "--vus takes a whole number from 1, not '0'"),
        ({"max_vus": "1.5"}, "--max-vus takes a whole number from 1, not '1.5'"),
        ({"ui": "tui"}, "--ui takes one of full, ci, none, not 'tui'"),
        ({"tag": ["novalue"]}, "--tag takes KEY=VALUE, not ['novalue']"),
        ({"exit_code_on_error": "256"}, "--exit-code-on-error takes a whole number from 0 to 255"),
    ],
)
def test_bad_flag_values_are_named(flags: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        said_by(flags, {})
    assert caught.value.message.startswith(sentence)


def test_environment_has_every_flag_under_its_own_name() -> None:
    settings = said_by(
        {},
        {
            "HYPERSCALE_VUS": "7",
            "HYPERSCALE_MAX_VUS": "9",
            "HYPERSCALE_OUT": "a.json b.html",
            "HYPERSCALE_THRESHOLD": "p(95) < 500 for 10s; rate<0.01",
            "HYPERSCALE_TAG": "env=staging team=shop",
            "HYPERSCALE_ONCE": "yes",
            "HYPERSCALE_DURATION": "",
            "HYPERSCALE_NODE_BIND": "of another command",
            "HYPERSCALE_JOB_ID": "no setting",
            "HYPERSCALE_WEB_SERVICE_HOST": "of Kubernetes",
        },
    )
    assert settings == Settings(
        vus=7,
        max_vus=9,
        out=["a.json", "b.html"],
        threshold=["p(95) < 500 for 10s", "rate<0.01"],
        tag={"env": "staging", "team": "shop"},
        once=True,
    )


def test_a_bad_environment_value_names_the_variable() -> None:
    with pytest.raises(BadInput, match="HYPERSCALE_ONCE takes true or false, not 'maybe'"):
        said_by({}, {"HYPERSCALE_ONCE": "maybe"})


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("HYPERSCALE_VSU", "did you mean 'HYPERSCALE_VUS'?"),
        ("HYPERSCALE_NOED_BIND", "did you mean 'HYPERSCALE_NODE_BIND'?"),
        ("HYPERSCALE_XYZ", "known: "),
    ],
)
def test_a_variable_that_nobody_reads_is_refused(variable: str, meant: str) -> None:
    with pytest.raises(BadInput, match=f"{variable} is not a setting") as refusal:
        said_by({}, {variable: "1"})
    assert refusal.value.hint.startswith(meant)


def test_config_file_uses_the_names_of_the_flags(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [run]
        vus = 50
        duration = 90
        max-vus = 80
        summary_trend_stats = "avg"
        out = ["a.json"]
        quiet = true
        [run.tag]
        team = "shop"
        [cluster]
        manager = "a:1"
        """,
    )
    assert read(path) == Settings(
        vus=50,
        duration="90",
        max_vus=80,
        summary_trend_stats="avg",
        out=["a.json"],
        quiet=True,
        tag={"team": "shop"},
    )


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("[run]\nvus = 'many'", "vus takes a whole number from 1, not 'many'", ""),
        ("[run]\nvuss = 1", "[run] has no setting 'vuss'", "did you mean 'vus'?"),
        ("vus = 1", "'vus' stands outside of any table", "[run]"),
        ("run = 1", "'run' is a table", "[run]"),
        ("[runn]", "has a table [runn], which nobody reads", "did you mean [run]?"),
        ("[run", "is not valid TOML", "[run]"),
    ],
)
def test_bad_config_files(tmp_path: Path, text: str, sentence: str, hint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        read(path)
    assert sentence in caught.value.message
    assert str(path) in caught.value.message
    assert hint in caught.value.hint


def test_a_missing_config_file_is_an_error_only_when_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_file(None, {}) is None
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_document(find_file(None, {"HYPERSCALE_CONFIG": "other.toml"}))
    (tmp_path / "hyperscale.toml").write_text("[run]\nvus = 3")
    assert filled_by(sources_of({}, {})).vus == 3


SOME = st.builds(
    Settings,
    vus=st.none() | st.integers(1, 9),
    ui=st.none() | st.sampled_from(["full", "ci"]),
    out=st.none() | st.lists(st.sampled_from(["a.json", "b.csv"])),
    tag=st.none() | st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
)


@given(SOME, SOME, SOME)
def test_layers_may_be_joined_in_any_grouping(a: Settings, b: Settings, c: Settings) -> None:
    assert a.over(b).over(c) == a.over(b.over(c))


@given(SOME, SOME)
def test_the_stronger_layer_wins_wherever_it_speaks(a: Settings, b: Settings) -> None:
    joined, strong, weak = asdict(a.over(b)), asdict(a), asdict(b)
    for name in NAMES:
        if name == "tag":
            assert joined[name] == (
                None
                if strong[name] is weak[name] is None
                else (weak[name] or {}) | (strong[name] or {})
            )
        else:
            assert joined[name] == (weak[name] if strong[name] is None else strong[name])
