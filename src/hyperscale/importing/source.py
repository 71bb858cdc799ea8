"""A draft as a test file: a flow that reads as a user's journey, and a step for each stop on it."""

from __future__ import annotations

from hyperscale.importing.draft import MARK, Call, Draft, Step, Value, leaves, marked, unmarked
from hyperscale.importing.names import call_name, identifier, unused
from hyperscale.importing.python_text import INDENT, WIDTH, Arguments, call, laid_out

VERBS = ("get", "head", "options", "post", "put", "patch", "delete")
WITHOUT_BODY = ("get", "head", "options")
BODIES = {"json", "form", "data", "files"}

_ASSETS = """\
    async def assets(self, *paths: str) -> None:
        calls = [self.client.http.get(path, name="assets") for path in paths]
        await asyncio.gather(*calls)
"""


def source(draft: Draft, name: str, file: str) -> str:
    """The text of the test file `file`, whose class is `name`."""
    flow = not any(step.weight for step in draft.steps)
    top = [_head(draft, file), _imports(draft, flow), _constants(draft, name)]
    methods = [_flow(draft)] if flow else []
    methods += [_step(step, draft) for step in draft.steps]
    if any(step.assets for step in draft.steps):
        methods.append(_ASSETS)
    body = "\n".join([_settings(draft), *methods])
    return "\n".join(part for part in top if part) + f"\n\nclass {name}(Workflow):\n{body}"


def _head(draft: Draft, file: str) -> str:
    hints = [f"hyperscale run {file} --once      # one iteration, every exchange shown"]
    hints += [f"hyperscale run {file} {hint}" for hint in draft.hints]
    told = "".join(c for c in draft.what if c.isprintable() and c not in '"\\')
    text = "\n".join([told, "", *hints])
    return f'"""{text}\n"""\n'


def _imports(draft: Draft, flow: bool) -> str:
    waits = any(step.assets or (flow and step.pause_s) for step in draft.steps)
    ours = ["Workflow", *(["secret"] if draft.secrets else []), "step"]
    texts = [text for step in draft.steps for one in step.calls for text in leaves(one.body)]
    files = any(isinstance(text, str) and text.startswith("File(") for text in texts)
    types = [*(["File"] if files else []), "HTTPResponse"]
    return (
        ("import asyncio\n\n" if waits else "")
        + f"from hyperscale import {', '.join(ours)}\n"
        + f"from hyperscale.testing import {', '.join(types)}\n"
    )


def _constants(draft: Draft, test: str) -> str:
    lines = [
        f"{name} = {laid_out(value, 0, len(name) + 3)}" for name, value in draft.constants.items()
    ]
    if draft.secrets:
        lines.append("# Variables of the environment; without one, the value beside its name.")
    for name, value in draft.secrets.items():
        # Of the test's own: a bare TOKEN may be another system's, and would be sent to this one.
        variable = f"{identifier(test)}_{name}".upper()
        lines.append(call(f"{name} = secret", [(None, variable), (None, value)], 0))
    return "\n".join([*lines, ""]) if lines else ""


def _settings(draft: Draft) -> str:
    settings = {
        **draft.load,
        "host": unmarked(draft.host),
        "thresholds": {"http_req_failed": "rate<1%"},
    }
    return "".join(
        f"{INDENT}{name} = {laid_out(value, 1, len(name) + 3)}\n"
        for name, value in settings.items()
    )


def _flow(draft: Draft) -> str:
    lines = ["async def flow(self) -> None:"]
    for step in draft.steps:
        if step.pause_s:
            lines.append(f"{INDENT}await asyncio.sleep({step.pause_s:g})")
        given = [value for value in draft.values if _leaves_step(value, step, draft)]
        head = f"{step.name} = " if given else ""
        arguments: Arguments = [(None, marked(value.name)) for value in _taken(step, draft)]
        lines.append(INDENT + call(f"{head}await self.{step.name}", arguments, 2))
        lines += [f"{INDENT}{value.name} = {step.name}{value.expression}" for value in given]
    return "".join(f"{INDENT}{line}\n" for line in lines)


def _taken(step: Step, draft: Draft) -> list[Value]:
    """The values of other steps that it needs."""
    needed = {name for one in step.calls for name in one.marks()}
    return [one for one in draft.values if one.name in needed and one.giver not in step.calls]


def _leaves_step(value: Value, step: Step, draft: Draft) -> bool:
    return value.giver in step.calls and any(value in _taken(one, draft) for one in draft.steps)


def _step(step: Step, draft: Draft) -> str:
    options: Arguments = [("group", step.group)] if step.group else []
    options += [("weight", step.weight)] if step.weight else []
    arguments = [f"{value.name}: {value.type}" for value in _taken(step, draft)]
    arguments += [
        f"{name}: {type(value).__name__} = {laid_out(value, 2)}"
        for name, value in step.defaults.items()
    ]
    lines = [call("@step", options, 1), _signature(step.name, arguments)]
    lines += [INDENT + line for line in _calls(step, draft)]
    return "".join(f"{INDENT}{line}\n" for line in lines)


def _calls(step: Step, draft: Draft) -> list[str]:
    """What a step does; it returns the answer that other steps need, else the last one."""
    needed = {name for one in step.calls for name in one.marks()}
    here = [one for one in draft.values if one.giver in step.calls and one.name in needed]
    givers = [one.giver for one in draft.values if _leaves_step(one, step, draft)]
    returned = givers[0] if givers else step.calls[-1]
    variables = [value.name for value in draft.values]
    lines, answer = [], ""
    for number, one in enumerate(step.calls):
        last = number == len(step.calls) - 1
        assets = step.assets if number == 0 else []
        values = [value for value in here if value.giver is one]
        head = "return " if last else ""
        if values or (one is returned and (assets or not last)):
            variable = unused(call_name("GET", one.url), variables)
            variables.append(variable)
            head = f"{variable} = "
            answer = variable if one is returned else answer
        lines.append(request(one, f"{head}await self.client.http", 2))
        lines += [f"{value.name} = {variable}{value.expression}" for value in values]
        if assets:
            lines.append(call("await self.assets", [(None, path) for path in assets], 2))
    if answer and lines[-1].startswith("return "):
        lines[-1] = lines[-1].removeprefix("return ")
    return [*lines, f"return {answer}"] if answer else lines


def _signature(name: str, arguments: list[str]) -> str:
    flat = f"async def {name}({', '.join(['self', *arguments])}) -> HTTPResponse:"
    if len(INDENT) + len(flat) <= WIDTH:
        return flat
    inner = [f"{INDENT * 2}{argument}," for argument in ("self", *arguments)]
    return "\n".join([f"async def {name}(", *inner, f"{INDENT}) -> HTTPResponse:"])


def request(one: Call, client: str, depth: int) -> str:
    """`client.get("/items", params={"limit": 5})`."""
    verb = one.method.lower()
    plain = verb in VERBS and not (BODIES & {*one.body} and verb in WITHOUT_BODY)
    arguments: Arguments = [] if plain else [(None, one.method.upper())]
    arguments.append((None, one.url))
    arguments += [("params", one.params)] if one.params else []
    arguments += [("headers", one.headers)] if one.headers else []
    arguments += one.body.items()
    # Answers to the same path with other values in it belong under one name.
    name = one.name or (MARK.sub(r"{\1}", one.url) if MARK.search(one.url) else "")
    arguments += [("name", name)] if name else []
    return call(f"{client}.{verb if plain else 'request'}", arguments, depth)
