"""A HAR file, as browsers save the traffic of a tab: its pages become steps.

Left out: what the client does by itself (redirects, preflights, cookies), what never got an answer,
and other people's servers, which nobody may put under load unasked.
"""

from __future__ import annotations

import base64
from collections import Counter
from datetime import datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from hyperscale.importing.draft import Answer, Call, Draft, Step, Value, unmarked
from hyperscale.importing.names import LONGEST, call_name, identifier, unused
from hyperscale.importing.requests import hide_secrets, is_asset, made_call, origin_of
from hyperscale.importing.values import connect

# A user who waits this long has read something and then done something else: another step.
PAUSE_S = 1.0
SHORTEST_PAUSE_S = 0.1


def read_har(document: dict[str, Any], url: str, assets: bool) -> Draft:
    entries = sorted(document["log"]["entries"], key=lambda entry: _time(entry["startedDateTime"]))
    entries = [entry for entry in entries if _is_own_request(entry)]
    entries = _without_followed(entries)
    if not entries:
        return Draft("", "", [])
    origin = origin_of(entries[0]["request"]["url"])
    ours = [entry for entry in entries if _near(origin, entry["request"]["url"])]
    pages = {page["id"]: str(page.get("title")) for page in document["log"].get("pages") or []}
    asset_of = {id(entry): _is_asset(entry) for entry in ours}
    calls = [_call(entry, origin, pages) for entry in ours if not asset_of[id(entry)]]
    values = connect(calls)
    steps = _steps(calls, values)
    _group(steps, pages)
    notes = _notes(entries, ours, origin)
    skipped = [entry for entry in ours if asset_of[id(entry)]]
    if assets:
        _add_assets(steps, [_call(entry, origin, pages) for entry in skipped])
    elif skipped:
        notes.append(f"left out {_count(len(skipped), 'static asset')}; --assets keeps them")
    first, last = _time(ours[0]["startedDateTime"]), calls[-1].ended_s if calls else 0.0
    what = (
        f"A user's journey, recorded in a browser: {_count(len(calls), 'request')} "
        f"in {max(1, round(last - first))} s."
    )
    draft = Draft(what, url or origin, steps, values=values, notes=notes)
    if any(".css(" in value.expression for value in values):
        notes.append("reading fields of pages needs: pip install 'hyperscale-loadtest[html]'")
    hide_secrets(draft)
    return draft


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _is_own_request(entry: dict[str, Any]) -> bool:
    request, response = entry["request"], entry["response"]
    preflight = {"access-control-request-method"} & {h["name"].lower() for h in request["headers"]}
    known = request["url"].startswith(("http://", "https://"))
    return known and response["status"] >= 200 and not preflight and request["method"] != "CONNECT"


def _without_followed(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those that a redirect led to: the client follows by itself."""
    followed: set[str] = set()
    kept = []
    for entry in entries:
        url = entry["request"]["url"]
        if url in followed:
            followed.discard(url)
        else:
            kept.append(entry)
        if 300 <= entry["response"]["status"] < 400 and entry["response"].get("redirectURL"):
            followed.add(urljoin(url, entry["response"]["redirectURL"]))
    return kept


def _near(origin: str, url: str) -> bool:
    """Of the same host, or of a neighbour such as api.shop.example of www.shop.example."""
    first, other = urlsplit(origin).hostname or "", urlsplit(url).hostname or ""
    base = first.removeprefix("www.")
    named = not base.replace(".", "").isdigit() and "." in base
    return first == other or (named and other.endswith(f".{base}"))


def _is_asset(entry: dict[str, Any]) -> bool:
    kind = entry["response"].get("content", {}).get("mimeType") or ""
    only = entry["request"]["method"] == "GET"
    return only and is_asset(urlsplit(entry["request"]["url"]).path, kind)


def _call(entry: dict[str, Any], origin: str, pages: dict[str, str]) -> Call:
    request, response = entry["request"], entry["response"]
    posted = request.get("postData") or {}
    headers = [(header["name"], header["value"]) for header in request["headers"]]
    if posted.get("mimeType") and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", posted["mimeType"]))
    body = posted.get("text") or ""
    call = made_call(request["method"], request["url"], headers, body, origin)
    if not body and posted.get("params"):
        call.body = {"form": {one["name"]: one.get("value") or "" for one in posted["params"]}}
    call.started_s = _time(entry["startedDateTime"])
    call.ended_s = call.started_s + max(0.0, entry.get("time") or 0.0) / 1000
    call.page = entry.get("pageref", "") if entry.get("pageref") in pages else ""
    call.answer = _answer(response)
    return call


def _answer(response: dict[str, Any]) -> Answer:
    content = response.get("content") or {}
    text = content.get("text") or ""
    if content.get("encoding") == "base64":
        text = base64.b64decode(text).decode(errors="replace")
    headers = [(header["name"], header["value"]) for header in response["headers"]]
    return Answer(response["status"], headers, text, (content.get("mimeType") or "").lower())


def _steps(calls: list[Call], values: list[Value]) -> list[Step]:
    """A step for each page, cut where the user paused, and where it would have two answers to
    return."""
    needed: set[Call] = set()  # calls whose answers another step needs
    while True:
        steps = _cut(calls, needed)
        step_of = {call: step for step in steps for call in step.calls}
        takers = [
            (value.giver, call) for value in values for call in calls if value.name in call.marks()
        ]
        now = {giver for giver, taker in takers if step_of[giver] is not step_of[taker]}
        if now <= needed:
            break
        needed |= now
    names: list[str] = []
    for step in steps:
        first = step.calls[0]
        step.name = unused(_name(first), [*names, *(value.name for value in values)])
        names.append(step.name)
    return steps


def _group(steps: list[Step], pages: dict[str, str]) -> None:
    """Steps of one page are told as a group, by its title; some browsers give its address."""
    of_page = Counter(step.group for step in steps)
    heads: dict[str, str] = {}
    for step in steps:
        page = step.group
        title = unmarked(" ".join(pages.get(page, "").split()))
        heads.setdefault(page, step.name if "://" in title or not title else title[:LONGEST])
        step.group = heads[page] if page and of_page[page] > 1 else ""


def _name(call: Call) -> str:
    operation = call.body.get("json")
    if isinstance(operation, dict) and isinstance(operation.get("operationName"), str):
        return identifier(operation["operationName"], "query")  # of GraphQL
    return call_name(call.method, urlsplit(call.url).path)


def _cut(calls: list[Call], needed: set[Call]) -> list[Step]:
    steps: list[Step] = []
    ended = 0.0
    for call in calls:
        step = steps[-1] if steps else None
        pause = call.started_s - ended if step else 0.0
        full = step and call in needed and any(one in needed for one in step.calls)
        if step is None or full or call.page != step.group or pause >= PAUSE_S:
            waited = round(pause, 1) if pause >= SHORTEST_PAUSE_S else 0.0
            steps.append(Step("", [call], group=call.page, pause_s=waited))
        else:
            step.calls.append(call)
        ended = max(ended, call.ended_s)
    return steps


def _add_assets(steps: list[Step], assets: list[Call]) -> None:
    """To the step that was under way when the browser asked for them."""
    for asset in assets:
        before = [step for step in steps if step.calls[0].started_s <= asset.started_s]
        step = before[-1] if before else steps[0]
        if asset.url not in step.assets:
            step.assets.append(asset.url)


def _notes(entries: list[Any], ours: list[Any], origin: str) -> list[str]:
    kept = {id(entry) for entry in ours}
    others = Counter(
        urlsplit(entry["request"]["url"]).hostname for entry in entries if id(entry) not in kept
    )
    if not others:
        return []
    hosts = ", ".join(f"{host} ({count})" for host, count in others.most_common(5))
    return [f"left out {_count(others.total(), 'request')} to other hosts than {origin}: {hosts}"]
