"""multipart/form-data bodies for uploads."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import File, content_type_of, form_fields

# Random enough never to occur in a file, constant so that equal calls send equal bytes.
BOUNDARY = f"hyperscale-{secrets.token_hex(16)}"
CONTENT_TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def multipart(files: Any, form: Any) -> bytes:
    """`files` maps field names to a path, a File, bytes, or (filename, content[, content type])."""
    if not isinstance(files, Mapping):
        raise BadInput(f"files takes a dict of field names and files, not a {type(files).__name__}")
    parts = [
        _part(f'name="{_quoted(name)}"', "", value.encode())
        for name, value in (form_fields(form) if form is not None else ())
    ]
    for field, value in files.items():
        filename, content, content_type = _file(str(field), value)
        disposition = f'name="{_quoted(str(field))}"; filename="{_quoted(filename)}"'
        parts.append(_part(disposition, content_type, content))
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])


def _part(disposition: str, content_type: str, content: bytes) -> bytes:
    typed = f"Content-Type: {content_type}\r\n" if content_type else ""
    start = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n{typed}\r\n"
    return start.encode() + content + b"\r\n"


def _file(field: str, value: Any) -> tuple[str, bytes, str]:
    if isinstance(value, tuple) and len(value) in (2, 3):
        filename, inner = str(value[0]), value[1]
        content = inner.encode() if isinstance(inner, str) else _file(field, inner)[1]
        content_type = str(value[2]) if len(value) == 3 else content_type_of(filename)
        if "\r" in content_type or "\n" in content_type:
            raise BadInput(f"the content type of file {field} contains a line break")
        return filename, content, content_type
    if isinstance(value, bytes | bytearray):
        return field, bytes(value), "application/octet-stream"
    file = File.of(value)
    return (file.name, *file.body())


def _quoted(text: str) -> str:
    """As browsers write names: the three characters that would end them are percent-encoded."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
