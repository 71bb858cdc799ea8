"""The body of a call: what its arguments encode to, whole or read while it is sent."""

from __future__ import annotations

from typing import Any

from hyperscale.clients.http.compression import check_coding, compress
from hyperscale.clients.http.multipart import CONTENT_TYPE, multipart
from hyperscale.clients.http.upload import Upload, of_file, upload_of
from hyperscale.workload.arguments import Data, File
from hyperscale.workload.encoding import encode_body, encode_form, encode_json

Body = tuple[bytes | Upload, str]
_WHOLE = (bytes, str, dict, list)  # what most bodies are; none of them is read piece by piece


def body_of(json: Any, data: Any, form: Any, files: Any, coding: Any) -> Body:
    """The body and its content type; both empty when there is none. One kind at most is given."""
    if coding is not None:
        return _compressed(json, data, form, files, coding)
    if files is not None:
        return multipart(files, form), CONTENT_TYPE
    if form is not None:
        return encode_form(form), "application/x-www-form-urlencoded"
    value = json if data is None else data
    if isinstance(value, Data):
        return value.body()
    if isinstance(value, File):
        return of_file(value), value.content_type
    if data is None:
        return encode_json(value), "application/json"
    if isinstance(value, _WHOLE):
        return encode_body(value)
    return upload_of(value) or encode_body(value)


def _compressed(json: Any, data: Any, form: Any, files: Any, coding: Any) -> Body:
    """A typed body is compressed once, however long it is: that takes longer than sending it."""
    check_coding(coding)
    value = json if data is None else data
    if isinstance(value, Data | File):
        kept: Body | None = value.optimized.get(coding)
        if kept is None:
            body, content_type = value.body()
            kept = value.optimized[coding] = compress(body, coding), content_type
        return kept
    if value is None and form is None and files is None:
        return b"", ""
    given, content_type = body_of(json, data, form, files, None)
    if isinstance(given, Upload):
        return given.compressed(coding), content_type
    return compress(given, coding), content_type
