"""A test without a file: one URL, asked again and again.

It becomes the workflow that an author would write for it, so that results, reports and clusters
know no difference.
"""

from __future__ import annotations

from hyperscale.cli.ping import body_of, headers_of
from hyperscale.errors import BadInput
from hyperscale.testing import URL, Data, Headers, HTTPResponse
from hyperscale.workload.hooks import step
from hyperscale.workload.workflow import Workflow

VERBS = ("get", "post", "put", "patch", "delete", "head", "options")
WITH_BODY = ("post", "put", "patch")

_TEST = """
class {name}(Workflow):
    @step()
    async def {verb}(self, {arguments}) -> HTTPResponse:
        return await self.client.http.{verb}({call})
"""


def url_test(url: str, method: str, headers: list[str], data: str | None) -> type[Workflow]:
    """The workflow for a URL; `data` without a method makes it a POST."""
    verb = (method or ("get" if data is None else "post")).lower()
    if verb not in VERBS:
        raise BadInput(f"--method takes one of {', '.join(VERBS).upper()}, not {method!r}")
    if data is not None and verb not in WITH_BODY:
        raise BadInput(
            f"--data is for {', '.join(WITH_BODY).upper()}, not for {verb.upper()}",
            "leave --method out, or write a test file",
        )
    arguments: dict[str, URL | Headers | Data] = {"url": URL(url)}
    if headers:
        arguments["headers"] = Headers(headers_of(headers))
    if data is not None:
        arguments["data"] = Data(body_of(data))
    source = _TEST.format(
        name=verb.capitalize(),
        verb=verb,
        arguments=", ".join(
            f"{name}: {type(value).__name__} = {name}" for name, value in arguments.items()
        ),
        call=", ".join("url" if name == "url" else f"{name}={name}" for name in arguments),
    )
    names = (Workflow, step, URL, Headers, Data, HTTPResponse)
    scope = {"__name__": "url_test", **{one.__name__: one for one in names}, **arguments}
    exec(compile(source, url, "exec"), scope)
    made: type[Workflow] = scope[verb.capitalize()]  # type: ignore[assignment]  # made above
    return made
