"""multipart/form-data bodies for uploads."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from hyperscale.clients.http.upload import Upload, joined, name_of, of_file, of_file_object
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import File, content_type_of
from hyperscale.workload.encoding import encode_body, form_fields
from hyperscale.workload.headers import header_value
from hyperscale.workload.texts import shown

# Random enough never to occur in a file, constant so that equal calls send equal bytes.
BOUNDARY = f"hyperscale-{secrets.token_hex(16)}"
_BOUNDARY = BOUNDARY.encode()
CONTENT_TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def multipart(files: Any, form: Any) -> bytes | Upload:
    """`files` maps field names to files, or lists pairs of them; a field may have a list of files.

    A file is a path, a File, bytes, an open file, or (filename, content[, content type]), where the
    filename may be None for a field that is no file and content may also be text.
    """
    parts: list[bytes | Upload] = []
    for name, value in form_fields(form) if form is not None else ():
        parts += (_start(name), encode_body(value)[0], b"\r\n")
    for field, value in _fields(files):
        filename, content, content_type = _file(field, value)
        parts += (_start(field, filename, content_type), content, b"\r\n")
    parts.append(b"--%b--\r\n" % _BOUNDARY)
    return joined(parts)


def _fields(files: Any) -> Iterator[tuple[str, Any]]:
    pairs = files.items() if isinstance(files, Mapping) else files
    if not isinstance(files, Mapping | list | tuple):
        raise _refused(files)
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise _refused(files)
        field, value = pair
        for one in value if isinstance(value, list) else [value]:
            yield str(field), one


def _refused(files: Any) -> BadInput:
    return BadInput(
        f"files takes a dict of field names and files or a list of pairs, not {shown(files)}",
        "files={'photo': File('a.png')}, files={'photo': [File('a.png'), File('b.png')]}",
    )


def _start(name: str | bytes, filename: str | None = None, content_type: str = "") -> bytes:
    start = b'--%b\r\nContent-Disposition: form-data; name="%b"' % (_BOUNDARY, _quoted(name))
    if filename is not None:
        start += b'; filename="%b"' % _quoted(filename)
    if content_type:
        start += b"\r\nContent-Type: %b" % header_value("Content-Type of a file", content_type)
    return start + b"\r\n\r\n"


def _file(field: str, value: Any) -> tuple[str | None, bytes | Upload, str]:
    """Its name, what is in it, and its content type."""
    if isinstance(value, tuple) and len(value) in (2, 3):
        filename = None if value[0] is None else str(value[0])
        inner = value[1]
        content = encode_body(inner)[0] if isinstance(inner, str) else _file(field, inner)[1]
        if len(value) == 3:
            return filename, content, str(value[2] or "")
        return filename, content, "" if filename is None else content_type_of(filename)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return field, bytes(value), "application/octet-stream"
    if hasattr(value, "read"):
        name = name_of(value) or field
        return name, of_file_object(value, f"files[{field!r}]"), content_type_of(name)
    if isinstance(value, File):
        return value.name, of_file(value), value.content_type
    try:
        file = File(value)
    except BadInput:
        raise BadInput(
            f"files[{field!r}] is a {type(value).__name__}, which is no file",
            "a path, File, bytes, an open file, or (filename, content, content type)",
        ) from None
    return file.name, of_file(file, kept=False), file.content_type


@lru_cache(maxsize=1024)
def _quoted(name: str | bytes) -> bytes:
    """As browsers write names: the three characters that would end them are percent-encoded."""
    try:
        data = name.encode() if isinstance(name, str) else name
    except UnicodeEncodeError:
        raise BadInput(f"{shown(name)} in files or form is a name that is not text") from None
    return data.replace(b'"', b"%22").replace(b"\r", b"%0D").replace(b"\n", b"%0A")
