"""Which kind of file it is, told by what is in it, and the test file made of it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from hyperscale.errors import BadInput
from hyperscale.importing.access_log import LINE, read_access_log
from hyperscale.importing.curl import read_curl
from hyperscale.importing.draft import Draft
from hyperscale.importing.har import read_har
from hyperscale.importing.names import class_name
from hyperscale.importing.openapi import read_openapi
from hyperscale.importing.postman import read_postman
from hyperscale.importing.source import source
from hyperscale.workload.scaffold import DEFAULT_URL

LOOKED_AT = 50  # lines of a log, for the first that is one
KINDS = "a HAR, an OpenAPI document, a Postman collection, curl commands or an access log"


@dataclass(frozen=True)
class Imported:
    source: str
    notes: tuple[str, ...]  # what was left out, and what it still needs


def imported(file: Path, made: Path, url: str = "", assets: bool = False) -> Imported:
    """The text of the test file `made`, out of `file`. Raises BadInput for what cannot be read."""
    try:
        draft = _read(file, url.rstrip("/"), assets)
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise BadInput(
            f"{file} cannot be read: something in it is not as its format has it ({error!r})"
        ) from error
    if not draft.steps:
        raise BadInput(f"{file} has no request that a test could make")
    name = class_name(file.name.partition(".")[0])
    return Imported(source(draft, name, made.name), tuple(draft.notes))


def _read(file: Path, url: str, assets: bool) -> Draft:
    with file.open(encoding="utf-8-sig", errors="replace") as opened:
        begin = list(islice(opened, LOOKED_AT))
        if any(LINE.search(line) for line in begin):
            opened.seek(0)
            return read_access_log(opened, url, DEFAULT_URL, assets)
        text = "".join(begin) + opened.read()
    document = _document(text, file)
    if isinstance(document, dict):
        if isinstance(document.get("log"), dict):
            return read_har(document, url, assets)
        if "openapi" in document or "swagger" in document:
            return read_openapi(document, url, DEFAULT_URL)
        if "postman" in str((document.get("info") or {}).get("schema")):
            return read_postman(document, url, DEFAULT_URL)
    elif any(line.lstrip("$ \t").startswith("curl") for line in text.splitlines()):
        return read_curl(text, url)
    raise BadInput(f"{file} is none of the files a test can be made of", f"it takes {KINDS}")


def _document(text: str, file: Path) -> Any:
    """What JSON or YAML holds; None for other text."""
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise BadInput(f"{file} is not JSON: {error}") from error
    is_yaml = file.suffix.lower() in (".yaml", ".yml") or text.lstrip().startswith("openapi:")
    if not is_yaml:
        return None
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise BadInput(
            f"{file} is YAML, which needs PyYAML, and that is not installed", "pip install pyyaml"
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"{file} is not YAML: {error}") from error
