"""Reading a result file back, with an error that says which of the usual mistakes was made."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics.results import SCHEMA, Results, decode

FAMILY, _, VERSION = SCHEMA.partition("/")


class _Header(msgspec.Struct):
    schema: str


def load(path: str | Path) -> Results:
    data = _read(Path(path))
    try:
        schema = msgspec.json.decode(data, type=_Header).schema
    except msgspec.ValidationError:
        raise BadInput(
            f"{path} is JSON, but not a result of Hyperscale.",
            "Give a file written with: hyperscale run FILE -o results.json",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(
            f"{path} is not JSON: {error}.",
            "Give the .json file of a run; CSV, XML and HTML files cannot be read back.",
        ) from None
    _check_version(path, schema)
    try:
        return decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadInput(
            f"{path} does not follow the schema {SCHEMA}: {error}.",
            "The file was changed after it was written, or by another tool.",
        ) from None


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(
            f"There is no file {path}.", "Write one with: hyperscale run FILE -o results.json"
        ) from None
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    if not data.strip():
        raise BadInput(f"{path} is empty.", "The run that was to write it has not ended well.")
    return data


def _check_version(path: str | Path, schema: str) -> None:
    family, _, version = schema.partition("/")
    if family != FAMILY:
        raise BadInput(
            f"{path} has the schema {schema!r}, which is not a result of Hyperscale.",
            "Give a file written with: hyperscale run FILE -o results.json",
        )
    if version != VERSION:
        raise BadInput(
            f"{path} has version {version} of the result schema; this Hyperscale reads {VERSION}.",
            "Use the version of Hyperscale that wrote it, or run the test again.",
        )
