"""One HTTP exchange as text, for `--http-debug` and `--once`."""

from __future__ import annotations

from hyperscale.workload.responses import HTTPResponse

BODY_CHARACTERS_MAX = 4000


def describe_exchange(response: HTTPResponse, full: bool) -> str:
    head, _, body = response.request_bytes.partition(b"\r\n\r\n")
    lines = _quoted("> ", head.decode("latin-1"))
    if full and body:
        lines += ["> ", *_quoted("> ", _body(body))]
    timings = ", ".join(f"{name} {ms:.2f} ms" for name, ms in response.timings.items())
    if response.status:
        lines.append(f"< {response.status}  ({timings})")
        lines += [f"< {name}: {value}" for name, value in response.headers.items()]
        if full and response.content:
            lines += ["< ", *_quoted("< ", _body(response.content))]
    if response.error:
        lines.append(f"! {response.outcome}: {response.error}")
    return "\n".join(lines) + "\n"


def _quoted(mark: str, text: str) -> list[str]:
    return [mark + line for line in text.splitlines()]


def _body(data: bytes) -> str:
    text = data[:BODY_CHARACTERS_MAX].decode("utf-8", "replace")
    more = len(data) - BODY_CHARACTERS_MAX
    return text if more <= 0 else f"{text}\n... {more:,} more bytes"
