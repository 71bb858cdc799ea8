"""The config file: which one it is, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyperscale.errors import BadInput

CONFIG_FILE = "hyperscale.toml"
VARIABLE = "HYPERSCALE_CONFIG"


def find_file(named: str | None, environ: Mapping[str, str]) -> Path | None:
    """The one named by `--config` or by the variable, else `hyperscale.toml` here if there is
    one."""
    named = named or environ.get(VARIABLE)
    if named:
        return Path(named)
    default = Path(CONFIG_FILE)
    return default if default.is_file() else None


def read_document(path: Path | None) -> dict[str, Any]:
    """All tables. Raises BadInput."""
    if path is None:
        return {}
    import tomllib  # most runs have no file

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
            "settings stand in tables: [run], then lines such as vus = 50",
        ) from error
