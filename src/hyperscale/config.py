"""Every setting of a run, in one place: its name, its type, and where its value may come from.

A setting has one name. `max_vus` is `--max-vus` on the command line, `HYPERSCALE_MAX_VUS` in the
environment and `max-vus` in the `[run]` table of `hyperscale.toml`. The three are read by the
same code, so a bad value gets the same sentence wherever it was written. Strongest first: flag,
environment, test file, config file, default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.cluster.jobs.records import LostLoad

ENV_PREFIX = "HYPERSCALE_"
CONFIG_FILE = "hyperscale.toml"
RUN_TABLE = "run"

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """None means "not said here": the next weaker source decides."""

    # the load: flags and environment override the test file, the config file fills in behind it
    vus: int | None = None
    vus_each: int | None = None
    duration: str | None = None
    iterations: int | None = None
    stage: list[str] | None = None
    rate: str | None = None
    max_vus: int | None = None
    rps: str | None = None
    host: str | None = None
    insecure_skip_tls_verify: bool | None = None
    threshold: list[str] | None = None
    tag: dict[str, str] | None = None
    # how it is run
    file: str | None = None
    workers: int | None = None
    timeout: str | None = None
    seed: int | None = None
    env: dict[str, str] | None = None
    env_file: str | None = None
    secret: list[str] | None = None
    no_thresholds: bool | None = None
    exit_code_on_error: int | None = None
    once: bool | None = None
    # on a cluster, instead of on this machine
    cluster: list[str] | None = None
    certs: str | None = None
    detach: bool | None = None
    lost_load: LostLoad | None = None
    # what is shown and written
    ui: str | None = None
    headless: bool | None = None
    quiet: bool | None = None
    verbose: bool | None = None
    no_color: bool | None = None
    http_debug: str | None = None
    summary_trend_stats: str | None = None
    debug: bool | None = None
    out: list[str] | None = None
    html: str | None = None
    json: str | None = None
    csv: str | None = None
    junit: str | None = None

    def over(self, weaker: Settings) -> Settings:
        """These settings where they say something, `weaker` where they do not.

        Tables (tags, environment) are joined key by key; lists are replaced as a whole.
        """
        merged: dict[str, Any] = {}
        for name in NAMES:
            mine, theirs = getattr(self, name), getattr(weaker, name)
            if isinstance(mine, dict) and isinstance(theirs, dict):
                merged[name] = theirs | mine
            else:
                merged[name] = theirs if mine is None else mine
        return Settings(**merged)


NAMES = tuple(field.name for field in fields(Settings))


class _Unfit(ValueError):
    """The value is not what the setting takes; the text says what would be."""


def _whole(at_least: int, at_most: int | None = None) -> Callable[[object], int]:
    wanted = f"a whole number from {at_least}" + (f" to {at_most}" if at_most is not None else "")

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise _Unfit(wanted)
        try:
            number = int(value)
        except ValueError:
            raise _Unfit(wanted) from None
        if number < at_least or (at_most is not None and number > at_most):
            raise _Unfit(wanted)
        return number

    return read


def _choice(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in choices:
            raise _Unfit(f"one of {', '.join(choices)}")
        return str(value)

    return read


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Unfit("text")
    return str(value)


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word not in _YES | _NO:
        raise _Unfit("true or false")
    return word in _YES


def _texts(separator: str | None) -> Callable[[object], list[str]]:
    """A list; in the environment one line, cut at `separator` (None: at white space)."""

    def read(value: object) -> list[str]:
        if isinstance(value, str):
            return [part.strip() for part in value.split(separator) if part.strip()]
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise _Unfit("a list of texts")
        return list(value)

    return read


def _pairs(value: object) -> dict[str, str]:
    if isinstance(value, dict):
        return {str(key): _text(item) for key, item in value.items()}
    pairs: dict[str, str] = {}
    for item in _texts(None)(value):
        key, equals, text = item.partition("=")
        if not key or not equals:
            raise _Unfit("KEY=VALUE")
        pairs[key] = text
    return pairs


_READERS: dict[str, Callable[[object], object]] = {
    "vus": _whole(1),
    "vus_each": _whole(1),
    "iterations": _whole(1),
    "max_vus": _whole(1),
    "workers": _whole(-1),
    "seed": _whole(0),
    "exit_code_on_error": _whole(0, 255),
    "stage": _texts(None),
    "out": _texts(None),
    "threshold": _texts(";"),  # an expression may hold blanks and commas: "p(95) < 500 for 10s"
    "tag": _pairs,
    "env": _pairs,
    "secret": _texts(None),
    "insecure_skip_tls_verify": _switch,
    "no_thresholds": _switch,
    "once": _switch,
    "cluster": _texts(None),
    "detach": _switch,
    "lost_load": _choice("squeeze", "move", "drop"),
    "headless": _switch,
    "quiet": _switch,
    "verbose": _switch,
    "no_color": _switch,
    "debug": _switch,
    "ui": _choice("full", "ci", "none"),
    "http_debug": _choice("headers", "full"),
}


def flag_name(setting: str) -> str:
    return "--" + setting.replace("_", "-")


def from_flags(flags: Mapping[str, object]) -> Settings:
    """Command-line values by setting name; None, False and empty lists were not given."""
    return _read(
        (flag_name(name), name, flags[name])
        for name in NAMES
        if flags.get(name) not in (None, False, [], ())
    )


def from_environment(environ: Mapping[str, str]) -> Settings:
    """`HYPERSCALE_<FLAG>` for each flag; an empty value counts as absent."""
    labels = {name: ENV_PREFIX + name.upper() for name in NAMES}
    return _read(
        (label, name, environ[label]) for name, label in labels.items() if environ.get(label)
    )


def find_file(named: str | None) -> Path | None:
    """The config file to use: the one named, else `hyperscale.toml` here if there is one."""
    if named:
        return Path(named)
    default = Path(CONFIG_FILE)
    return default if default.is_file() else None


def from_file(path: Path) -> Settings:
    """The `[run]` table of a TOML file. Other tables belong to other commands."""
    table = _run_table(path, _document(path))
    spelled = [name.replace("_", "-") for name in NAMES]
    for key in table:
        if key.replace("_", "-") not in spelled:
            near = get_close_matches(key, spelled, n=1)
            raise BadInput(
                f"{path}: [run] has no setting {key!r}",
                f"did you mean {near[0]!r}?" if near else "the settings are named like the flags",
            )
    return _read((f"{path}: {key}", key.replace("-", "_"), value) for key, value in table.items())


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(
            f"the config file {str(path)!r} cannot be read: {error.strerror}",
            "give an existing TOML file to --config",
        ) from error
    except ValueError as error:
        raise BadInput(
            f"the config file {str(path)!r} is not valid TOML: {error}",
            "settings of a run stand in a table: [run], then lines such as vus = 50",
        ) from error


def _run_table(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    table = document.get(RUN_TABLE, {})
    stray = [
        key
        for key, value in document.items()
        if key.replace("-", "_") in NAMES and not (key == "cluster" and isinstance(value, dict))
    ]
    if stray or not isinstance(table, dict):
        raise BadInput(
            f"{path}: {(stray or [RUN_TABLE])[0]!r} stands outside the [run] table",
            "write the line [run] above the settings of a run",
        )
    return table


def _read(values: Iterable[tuple[str, str, object]]) -> Settings:
    read: dict[str, Any] = {}
    for label, name, value in values:
        try:
            read[name] = _READERS.get(name, _text)(value)
        except _Unfit as wanted:
            shown = "" if name == "env" else f", not {value!r}"  # a value may be a secret
            raise BadInput(f"{label} takes {wanted}{shown}") from None
    return Settings(**read)
