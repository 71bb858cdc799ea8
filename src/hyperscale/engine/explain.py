"""What is told of the first failure of a kind: where in the author's code, and which exchange.

Secrets are masked here, before texts are shortened: half a secret is not recognised any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hyperscale.metrics.results import Exchange, FirstFailure
from hyperscale.workload import frames
from hyperscale.workload.replies import Reply
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import CallResult
from hyperscale.workload.secrets import mask_body, mask_headers, mask_url

BODY_CHARACTERS = 500
HEADERS_MAX = 30
HEADER_CHARACTERS = 300


def explain(
    at_s: float,
    user: int,
    worker: str = "",
    error: BaseException | None = None,
    result: CallResult | None = None,
    step: Callable[..., object] | None = None,
) -> FirstFailure:
    """An exception that no line of the author's raised (a missing argument) is told with the line
    of the step."""
    place = (frames.where(error) or frames.line_of(step)) if error is not None else ""
    return FirstFailure(
        at_s=at_s,
        user=user,
        worker=worker,
        where=place,
        traceback=mask_body(frames.author_traceback(error)) if error is not None else "",
        exchange=exchange_of(result),
    )


def exchange_of(result: CallResult | None) -> Exchange | None:
    if isinstance(result, HTTPResponse):
        return _of_http(result)
    return _of_reply(result) if isinstance(result, Reply) else None


def _of_reply(reply: Reply) -> Exchange:
    return Exchange(
        method=reply.method,
        url=mask_url(reply.target),
        status=reply.status,
        reason="",
        request_headers={},
        request_body=_excerpt(reply.request_bytes, ()),
        headers={},
        body=_excerpt(reply.content, ()),
        size=len(reply.content),
        duration_ms=(reply.ended - reply.started) * 1e3,
    )


def _of_http(response: HTTPResponse) -> Exchange:
    head, _, body = response.request_bytes.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    sent = dict(line.partition(": ")[::2] for line in lines)
    answer = _readable(response)
    headers = [*sent.items(), *response.headers.items()]
    return Exchange(
        method=response.method,
        url=mask_url(response.url),
        status=response.status,
        reason=response.reason,
        request_headers=_few(mask_headers(sent)),
        request_body=_excerpt(body, headers),
        headers=_few(mask_headers(response.headers)),
        body=_excerpt(answer, headers),
        size=len(answer),
        duration_ms=(response.ended - response.started) * 1e3,
    )


def _readable(response: HTTPResponse) -> bytes:
    if response.head is None:
        return b""
    try:
        return response.content
    except Exception:  # noqa: BLE001 - a body that does not decode is shown as it came
        return response.raw


def _few(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value[:HEADER_CHARACTERS] for name, value in list(headers.items())[:HEADERS_MAX]}


def _excerpt(body: bytes, headers: Iterable[tuple[str, str]]) -> str:
    text = mask_body(body[: BODY_CHARACTERS * 8].decode("utf-8", "replace"), headers)
    return text if len(text) <= BODY_CHARACTERS else f"{text[:BODY_CHARACTERS]}…"
