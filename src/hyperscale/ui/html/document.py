"""One file that needs nothing else, safe to open and to send.

The content policy in the head forbids every request and every script but the one written here,
so a hostile server whose error text ends up in the page has no way out even past the escaping.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from hyperscale import __version__
from hyperscale.ui.html.markup import Child, Html, tag


def document(title: str, *body: Child, data: Html, version: str = "") -> str:
    """`data` is what the script reads; the text is to be written as UTF-8."""
    style = Html(asset("report.css"))
    script = Html(asset("charts.js") + asset("report.js"))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"hyperscale {version or __version__}"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", style),
    )
    page = tag("html", head, tag("body", *body, data, tag("script", script)), lang="en")
    return f"<!doctype html>\n{page}\n"


def asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
