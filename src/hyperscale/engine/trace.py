"""One exchange as text, for `--http-debug` and `--once`, without what is secret in it."""

from __future__ import annotations

from collections.abc import Iterable

from hyperscale.workload.replies import Reply
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.secrets import mask_body, mask_header

BODY_CHARACTERS_MAX = 4000
# Masks may be longer or shorter than what they hide; nothing is cut within a value.
_READ_BYTES = 4 * BODY_CHARACTERS_MAX


def describe_exchange(response: HTTPResponse | Reply, full: bool, step: str = "") -> str:
    if isinstance(response, Reply):
        return _of_reply(response, full, step)
    head, _, body = response.request_bytes.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").splitlines() or [""]
    sent = [(name, value.strip()) for name, _, value in (line.partition(":") for line in rest)]
    received = list(response.headers.items())
    both = [*sent, *received]
    lines = [f"# {step}"] if step else []
    lines += [f"> {mask_body(first, both)}", *_headers("> ", sent)]
    if full and body:
        lines += ["> ", *_body("> ", body, both)]
    timings = _timings(response)
    if response.status:
        lines.append(f"< {response.status}  ({timings})")
        lines += _headers("< ", received)
        if full and response.content:
            lines += ["< ", *_body("< ", response.content, both)]
    if response.error:
        lines.append(f"! {response.outcome}: {mask_body(response.error, both)}")
    return "\n".join(lines) + "\n"


def _of_reply(response: Reply, full: bool, step: str) -> str:
    lines = [f"# {step}"] if step else []
    lines.append(f"> {response.label.kind} {response.method} {mask_body(response.target)}")
    if full and response.request_bytes:
        lines += _body("> ", response.shown_request(), ())
    if response.ok:
        lines.append(f"< {response.bytes_in:,} bytes  ({_timings(response)})")
        if full and (shown := response.shown_answer()):
            lines += _body("< ", shown, ())
    else:
        lines.append(f"! {response.outcome}: {mask_body(response.error)}")
    return "\n".join(lines) + "\n"


def _timings(response: HTTPResponse | Reply) -> str:
    return ", ".join(f"{name} {ms:.2f} ms" for name, ms in response.timings.items())


def _headers(mark: str, headers: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{mark}{name}: {mask_header(name, value)}" for name, value in headers]


def _body(mark: str, data: bytes, headers: Iterable[tuple[str, str]]) -> list[str]:
    text = mask_body(data[:_READ_BYTES].decode("utf-8", "replace"), headers)
    lines = [mark + line for line in text[:BODY_CHARACTERS_MAX].splitlines()]
    more = len(data) - BODY_CHARACTERS_MAX
    return lines if more <= 0 else [*lines, f"{mark}... {more:,} more bytes"]
