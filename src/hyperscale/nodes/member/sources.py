"""Where the settings of a node come from: one name each, three places, and who said what.

`retries_max` of the section `jobs` is `--set jobs.retries_max=2` on the command line,
`HYPERSCALE_JOBS_RETRIES_MAX` in the environment and `retries_max` in the `[jobs]` table of
`hyperscale.toml`; strongest first, then its default. All are read by the same code, so a bad value
gets the same sentence wherever it was written, and the sentence says where that was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

from hyperscale.errors import BadInput

ENV_PREFIX = "HYPERSCALE_"
DEFAULT = "default"
# Tables of the file that belong to other commands.
OTHER_TABLES = ("run", "cluster", "scheduler")
# What Kubernetes tells every container about a service that happens to be named like a section.
_SERVICE_LINK = re.compile(r"(SERVICE_(HOST|PORT.*)|PORT(_\d+_(TCP|UDP|SCTP).*)?)")
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True}
_SWITCHES |= {"0": False, "false": False, "no": False, "off": False}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """Settings that belong together. The type of a default is the type of the setting."""

    table: str
    """Its place in the file, dotted, and the middle of its variables' names."""
    defaults: Mapping[str, object]
    flags: tuple[str, ...] = ()
    """Settings with a flag of their own; of a section of numbers the others are for `--set`."""
    unused: frozenset[str] = frozenset()
    """They may be written, for other roles read the same file, but say nothing to this one."""
    may_be_zero: tuple[str, ...] = ()
    """Durations that may be none at all; every other one, by its name `_s`, is above zero."""

    @property
    def name(self) -> str:
        return self.table.rpartition(".")[2]

    @property
    def prefix(self) -> str:
        return f"{ENV_PREFIX}{self.table.replace('.', '_').upper()}_"

    @property
    def used(self) -> list[str]:
        return [name for name in self.defaults if name not in self.unused]

    def without(self, *names: str) -> Section:
        return replace(self, unused=self.unused | frozenset(names))

    def only(self, *names: str) -> Section:
        return self.without(*(name for name in self.defaults if name not in names))


def numbers_of(kind: type[Any]) -> dict[str, object]:
    """The plain numbers and switches of a dataclass, with their defaults."""
    return {
        one.name: one.default
        for one in fields(kind)
        if one.default is not MISSING and isinstance(one.default, bool | int | float)
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


@dataclass(frozen=True, slots=True)
class Sources:
    flags: Mapping[str, object] = field(default_factory=dict)
    """By setting; None, False and what is empty were not given. `set` is a list of texts."""
    environ: Mapping[str, str] = field(default_factory=dict)
    document: Mapping[str, object] = field(default_factory=dict)
    """All tables of the file."""
    file: str = "hyperscale.toml"


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
                if sources.flags.get(name) not in (None, False, "", [], ()):
                    self._take(section, name, sources.flags[name], flag_name(name))
        for text in texts("--set", sources.flags.get("set") or []):
            self._assign(text)

    def of(self, section: str, name: str) -> Setting:
        return self._settings[section][name]

    def rows(self) -> list[Row]:
        """Everything that is in force, and since when."""
        return [
            Row(f"{section.name}.{name}", _shown(setting.value), setting.origin)
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
            reason = f": {error}" if str(error) else ""
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
            name: flag_name(name) if name in section.flags else f"{section.name}.{name}"
            for name in section.defaults
        }
        return {
            name: Setting(value, labels[name], DEFAULT) for name, value in section.defaults.items()
        }

    def _take(self, section: Section, name: str, value: object, origin: str) -> None:
        read = converted(origin, section.defaults[name], value)
        self._settings[section.name][name] = Setting(read, origin, origin)

    def _check_tables(self, sources: Sources) -> None:
        """A table of somebody else is none of ours, but a slip of the pen is."""
        ours = {section.table.partition(".")[0] for section in self._sections.values()}
        known = [*sorted(ours), *OTHER_TABLES]
        for table in sources.document:
            near = get_close_matches(table, known, n=1, cutoff=0.75)
            if table not in known and near:
                raise BadInput(
                    f"{sources.file} has a table [{table}], which nobody reads",
                    f"did you mean [{near[0]}]?",
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
            section = next((one for one in longest_first if variable.startswith(one.prefix)), None)
            if section is None or not sources.environ[variable]:
                continue
            rest = variable.removeprefix(section.prefix)
            if _SERVICE_LINK.fullmatch(rest) and rest.lower() not in section.defaults:
                continue
            if rest.lower() not in section.defaults:
                spelled = [one.upper() for one in section.defaults]
                raise unknown(f"{variable} is not a setting", rest, spelled, section.prefix)
            self._take(section, rest.lower(), sources.environ[variable], variable)

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


def unknown(sentence: str, name: str, known: Iterable[str], prefix: str = "") -> BadInput:
    near = get_close_matches(name, list(known), n=1)
    hint = f"did you mean {prefix + near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
    return BadInput(sentence, hint)


# -- values --------------------------------------------------------------------------------------


def converted(label: str, default: object, value: object) -> object:
    """The value as the type its default has."""
    if isinstance(default, bool):
        return switch(label, value)
    if isinstance(default, int | float):
        return number(label, value, whole=isinstance(default, int))
    if isinstance(default, tuple):
        return texts(label, value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(f"{label} takes text, not {value!r}")
    return str(value).strip()


def switch(label: str, value: object) -> bool:
    found = _SWITCHES.get(str(value).lower())
    if found is None:
        raise BadInput(f"{label} takes true or false, not {value!r}")
    return found


def number(label: str, value: object, *, whole: bool) -> int | float:
    wanted = "a whole number" if whole else "a number"
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        read = int(value) if whole and not isinstance(value, float) else float(value)
        if not math.isfinite(read) or (whole and read != int(read)):
            raise ValueError
    except ValueError:
        raise BadInput(f"{label} takes {wanted}, not {value!r}") from None
    if read < 0:
        raise BadInput(f"{label} takes nothing below zero, not {value!r}")
    return int(read) if whole else read


def texts(label: str, value: object) -> tuple[str, ...]:
    """A list, or one text cut at commas; each entry of a list may hold commas too."""
    given = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(entry, str) for entry in given):
        raise BadInput(f"{label} takes a list of texts, not {value!r}")
    parts = (part.strip() for entry in given for part in str(entry).split(","))
    return tuple(part for part in parts if part)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
