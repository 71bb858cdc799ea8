"""Where settings come from: one name each, three places, and who said what.

`retries_max` of the section `jobs` is `--set jobs.retries_max=2` on the command line,
`HYPERSCALE_JOBS_RETRIES_MAX` in the environment and `retries_max` in the `[jobs]` table of
`hyperscale.toml`; strongest first, then its default. All are read by the same code, so a bad value
gets the same sentence wherever it was written, and the sentence says where that was. A name that
no command knows is refused, in the file and in the environment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple, TypeVar

import msgspec

from hyperscale.config.file import CONFIG_FILE, VARIABLE, find_file, read_document
from hyperscale.config.values import comma_list, converted, default_of
from hyperscale.errors import BadInput

ENV_PREFIX = "HYPERSCALE_"
DEFAULT = "default"
RUN = "run"
# All tables of the file, whoever reads them.
TABLES = (
    *(RUN, "cluster", "node", "manager", "worker", "jobs", "records", "gate", "ledger"),
    "scheduler",
)
# Variables that are no settings: what processes of ours tell each other, and what jobs are told.
NOT_SETTINGS = frozenset(
    {
        VARIABLE,
        *(
            f"{ENV_PREFIX}{name}"
            for name in ("JOB_ID", "FENCING_TOKEN", "PROCESS_MARK", "READINESS")
        ),
        *(f"{ENV_PREFIX}{name}" for name in ("LIFELINE", "HANDED_OVER", "WEB_FD")),
    }
)
# What Kubernetes tells every container about a service that happens to be named like a section.
_SERVICE_LINK = r"([A-Z0-9_]+_)?(SERVICE_(HOST|PORT.*)|PORT(_\d+_(TCP|UDP|SCTP).*)?)"
_PASSWORD = r"(?<=://)[^/@\s]+@"
_PARAMETER = r"(?i)([?&][\w.-]*(?:passw|secret|token|key)[\w.-]*=)[^&#\s]+"

T = TypeVar("T")


class Section(msgspec.Struct, frozen=True):
    """Settings that belong together. A default, or a `Kind`, says what a setting takes."""

    table: str
    """Its place in the file, dotted, and the middle of its variables' names."""
    defaults: Mapping[str, object]
    flags: tuple[str, ...] = ()
    """Settings with a flag of their own; of a section of numbers the others are for `--set`."""
    unused: frozenset[str] = frozenset()
    """They may be written, for other roles read the same file, but say nothing to this one."""
    may_be_zero: tuple[str, ...] = ()
    """Durations that may be none at all; every other one, by its name `_s`, is above zero."""
    secret: frozenset[str] = frozenset()
    """Their values are shown to nobody."""
    spelled: Mapping[str, str] = {}
    """Flags that are named otherwise than their settings."""

    @property
    def name(self) -> str:
        return self.table.rpartition(".")[2]

    @property
    def prefix(self) -> str:
        """Of its variables; those of a run have none but ours, `HYPERSCALE_VUS`."""
        if self.table == RUN:
            return ENV_PREFIX
        return f"{ENV_PREFIX}{self.table.replace('.', '_').upper()}_"

    @property
    def used(self) -> list[str]:
        return [name for name in self.defaults if name not in self.unused]

    def flag(self, name: str) -> str:
        return self.spelled.get(name) or flag_name(name)

    def without(self, *names: str) -> Section:
        return msgspec.structs.replace(self, unused=self.unused | frozenset(names))

    def only(self, *names: str) -> Section:
        return self.without(*(name for name in self.defaults if name not in names))


def numbers_of(kind: type[Any]) -> dict[str, object]:
    """The plain numbers and switches of a dataclass, with their defaults."""
    return {
        name: value
        for name, value in defaults_of(kind).items()
        if isinstance(value, bool | int | float)
    }


def defaults_of(kind: type[Any]) -> dict[str, object]:
    """The fields of a dataclass that can be written as text, with their defaults."""
    return {
        one.name: one.default
        for one in fields(kind)
        if one.default is not MISSING and isinstance(one.default, bool | int | float | str | tuple)
    }


class Setting(NamedTuple):
    value: Any
    label: str
    """What it is called where it was written; of a default, where one would write it."""
    origin: str


class Row(NamedTuple):
    name: str
    value: str
    origin: str


class Sources(msgspec.Struct, frozen=True):
    flags: Mapping[str, object] = {}
    """By setting; None, False and what is empty were not given. `set` is a list of texts."""
    environ: Mapping[str, str] = {}
    document: Mapping[str, object] = {}
    """All tables of the file."""
    file: str = CONFIG_FILE


def sources_of(flags: Mapping[str, Any], environ: Mapping[str, str]) -> Sources:
    """With the config file that `flags` or the environment name, or that is there."""
    path = find_file(flags.get("config"), environ)
    file = CONFIG_FILE if path is None else str(path)
    return Sources(flags, environ, read_document(path), file)


class Reading:
    """All settings of some sections. Raises BadInput for a name or a value that cannot be."""

    def __init__(self, sources: Sources, sections: Iterable[Section]) -> None:
        self._sections = {section.name: section for section in sections}
        self._settings = {
            section.name: self._defaults(section) for section in self._sections.values()
        }
        self._check_tables(sources)
        for section in self._sections.values():
            self._take_file(section, sources)
        self._take_environment(sources)
        for section in self._sections.values():
            for name in section.flags:
                if sources.flags.get(name) not in (None, "", [], ()) and (
                    sources.flags[name] is not False or section.defaults[name] is True
                ):
                    self._take(section, name, sources.flags[name], section.flag(name))
        for text in comma_list(sources.flags.get("set") or ()):
            self._assign(text)

    def of(self, section: str, name: str) -> Setting:
        return self._settings[section][name]

    def said(self, section: str) -> dict[str, Any]:
        """What some place sets, without the defaults."""
        found = self._settings[section].items()
        return {name: setting.value for name, setting in found if setting.origin != DEFAULT}

    def rows(self) -> list[Row]:
        """Everything that is in force, and since when."""
        return [
            Row(
                f"{section.name}.{name}",
                "***" if name in section.secret and setting.value else shown(setting.value),
                setting.origin,
            )
            for section in self._sections.values()
            for name, setting in self._settings[section.name].items()
            if name not in section.unused
        ]

    def build(self, section: str, kind: Callable[..., T], **more: object) -> T:
        """Make `kind` of a section's numbers. Raises BadInput that names who said them."""
        used, settings = self._sections[section].used, self._settings[section]
        try:
            made = kind(**{name: settings[name].value for name in used}, **more)
        except (ValueError, AssertionError) as error:
            said = [name for name in used if settings[name].origin != DEFAULT]
            named = [name for name in said if re.search(rf"\b{name}\b", str(error))] or said
            where = ", ".join(f"{settings[name].label} is {settings[name].value}" for name in named)
            why = "" if isinstance(error, AssertionError) else str(error)
            reason = f": {why}" if why else ""
            raise BadInput(
                f"the {section} settings cannot be used{reason}" + (f" ({where})" if where else "")
            ) from None
        self._check_durations(section)
        return made

    def _check_durations(self, section: str) -> None:
        for name in self._sections[section].used:
            value, label, _ = self._settings[section][name]
            zero_is_fine = name in self._sections[section].may_be_zero
            if name.endswith("_s") and value == 0 and not zero_is_fine:
                raise BadInput(f"{label} takes seconds above zero, not 0")

    # -- sources -----------------------------------------------------------------------------

    def _defaults(self, section: Section) -> dict[str, Setting]:
        labels = {
            name: section.flag(name) if name in section.flags else f"{section.name}.{name}"
            for name in section.defaults
        }
        return {
            name: Setting(default_of(value), labels[name], DEFAULT)
            for name, value in section.defaults.items()
        }

    def _take(self, section: Section, name: str, value: object, origin: str) -> None:
        read = converted(origin, section.defaults[name], value)
        weaker = self._settings[section.name][name].value
        if isinstance(read, dict) and isinstance(weaker, dict):
            read = weaker | read
        self._settings[section.name][name] = Setting(read, origin, origin)

    def _check_tables(self, sources: Sources) -> None:
        """A table of another command is none of ours, but one that nobody reads is a slip."""
        for table, value in sources.document.items():
            if isinstance(value, Mapping):
                if table not in TABLES:
                    where = f"{sources.file} has a table [{table}]"
                    raise unknown(f"{where}, which nobody reads", table, TABLES, "[{}]")
            elif table in TABLES:
                raise BadInput(f"{sources.file}: {table!r} is a table", f"write [{table}]")
            else:
                raise BadInput(
                    f"{sources.file}: {table!r} stands outside of any table",
                    "write the line [run] above the settings of a run",
                )

    def _take_file(self, section: Section, sources: Sources) -> None:
        found: object = sources.document
        for part in section.table.split("."):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        where = f"{sources.file}: [{section.table}]"
        if not isinstance(found, Mapping):
            raise BadInput(
                f"{sources.file}: {section.name!r} is a table", f"write [{section.table}]"
            )
        inner = {one.name for one in self._sections.values() if one.table != one.name}
        for key, value in found.items():
            name = key.replace("-", "_")
            if section.table == section.name and name in inner:
                continue
            if name not in section.defaults:
                raise unknown(f"{where} has no setting {key!r}", name, section.defaults)
            self._take(section, name, value, f"{where} {key}")

    def _take_environment(self, sources: Sources) -> None:
        longest_first = sorted(self._sections.values(), key=lambda one: -len(one.prefix))
        for variable in sorted(sources.environ):
            if not variable.startswith(ENV_PREFIX) or not sources.environ[variable]:
                continue
            section = next((one for one in longest_first if variable.startswith(one.prefix)), None)
            if section is not None:
                name = variable.removeprefix(section.prefix).lower()
                if name in section.defaults:
                    self._take(section, name, sources.environ[variable], variable)
                    continue
            _check_variable(variable, section)

    def _assign(self, text: str) -> None:
        path, equals, value = text.partition("=")
        table, dot, key = path.strip().partition(".")
        name = key.replace("-", "_")
        numbers = [one for one in self._sections.values() if one.flags != tuple(one.defaults)]
        if not (equals and dot):
            raise BadInput(f"--set takes SECTION.NAME=VALUE, not {text!r}", _choice(numbers))
        section = next((one for one in numbers if one.name == table), None)
        if section is None:
            raise BadInput(f"--set knows no section {table!r}", _choice(numbers))
        if name not in section.used:
            raise unknown(f"--set {table} has no setting {key!r}", name, section.used)
        self._take(section, name, value.strip(), f"--set {table}.{name}")


def _choice(sections: Iterable[Section]) -> str:
    return f"sections are {', '.join(section.name for section in sections)}"


def flag_name(setting: str) -> str:
    return "--" + setting.replace("_", "-")


def _check_variable(variable: str, section: Section | None) -> None:
    """One that this command does not read: it may be another's. Raises BadInput for nobody's."""
    from hyperscale.config.run import NAMES  # imports this module

    prefix = ENV_PREFIX if section is None else section.prefix
    others = [f"{ENV_PREFIX}{table.upper()}_" for table in TABLES if table != RUN]
    anothers = prefix == ENV_PREFIX and (
        variable.startswith(tuple(others))
        or variable in NOT_SETTINGS
        or variable.removeprefix(ENV_PREFIX).lower() in NAMES
    )
    if anothers or re.fullmatch(_SERVICE_LINK, variable.removeprefix(ENV_PREFIX)):
        return
    rest = variable.removeprefix(prefix)
    known = [name.upper() for name in (NAMES if section is None else section.defaults)]
    if prefix == ENV_PREFIX:
        _, _, tail = rest.partition("_")
        known += [f"{table.upper()}_{tail}" for table in TABLES if tail and table != RUN]
    raise unknown(f"{variable} is not a setting", rest, known, f"'{prefix}{{}}'")


def unknown(sentence: str, name: str, known: Iterable[str], shape: str = "'{}'") -> BadInput:
    from difflib import get_close_matches  # most commands never need it

    near = get_close_matches(name, list(known), n=1)
    if near:
        return BadInput(sentence, f"did you mean {shape.format(near[0])}?")
    return BadInput(sentence, f"known: {', '.join(sorted(known))}")


def shown(value: object) -> str:
    if value in (None, "", ()):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return re.sub(_PARAMETER, r"\1***", re.sub(_PASSWORD, "***@", str(value)))
