"""The environment variables of a test: where their values come from, and which are secret.

Strongest first: `-e`, the env file, the environment there is, the config file. Values of an env
file and of `--secret` are secret: they reach the generators and are masked in all that is shown.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path
from typing import NamedTuple

from hyperscale.config.run import Settings
from hyperscale.errors import BadInput
from hyperscale.workload.secrets import mask_args, register


class Variables(NamedTuple):
    values: dict[str, str]
    secret: list[str]  # names of those that are


def variables(said: Settings, filled: Settings) -> Variables:
    """Those of the config file yield to the environment there is. Raises BadInput."""
    settings = said.over(filled)
    given = {name: value for name, value in (filled.env or {}).items() if name not in os.environ}
    private = read_env_file(Path(settings.env_file)) if settings.env_file else {}
    values = given | private | (said.env or {})
    values |= {name: _known(name, values) for name in settings.secret or ()}
    names = sorted({*private, *(settings.secret or ())})
    for name in names:
        register(name, values[name])
    return Variables(values, names)


def recorded_command() -> str:
    """What was typed, for results and job records: without the values of variables and tokens."""
    return shlex.join(["hyperscale", *mask_args(sys.argv[1:])])


def read_env_file(path: Path) -> dict[str, str]:
    """`KEY=VALUE` lines; a value may stand in quotes, and everything in it counts."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise BadInput(
                    f"the env file {str(path)!r} has mode {mode:o}: others may read its secrets",
                    f"chmod 600 {shlex.quote(str(path))}",
                )
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadInput(
            f"the env file {str(path)!r} cannot be read: {reason}",
            "give --env-file a file of KEY=VALUE lines",
        ) from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name.isidentifier():
            raise BadInput(
                f"line {number} of the env file {str(path)!r} is not KEY=VALUE",
                "a line has one variable; comments start with #",
            )
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        found[name] = value[1:-1] if quoted else value
    return found


def _known(name: str, values: dict[str, str]) -> str:
    name, equals, _ = name.partition("=")
    if equals or not name.isidentifier():
        raise BadInput(
            "--secret takes the name of a variable and never its value",
            f"the shell's history would keep it: export {name if equals else 'NAME'} or put it "
            "into an --env-file, then --secret with the name alone",
        )
    value = values.get(name, os.environ.get(name))
    if value is None:
        raise BadInput(
            f"--secret {name}: there is no such variable",
            f"export {name}, or put it into a file with mode 600 for --env-file",
        )
    return value
