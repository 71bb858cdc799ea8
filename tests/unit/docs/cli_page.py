"""docs/cli.md, made from the commands: `make docs` writes it, a test holds it to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from hyperscale.cli.app import app
from hyperscale.cli.commands import GROUPS

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
HEAD = """# The command line

`make docs` writes this page from the commands. `hyperscale COMMAND --help` says the same.
[Running a test](run.md) explains `run` at length, [Settings](settings.md) where options can be set
besides on the command line."""


def page() -> str:
    group: Any = typer.main.get_command(app)
    commands = {name: group.commands[name] for names in GROUPS.values() for name in names}
    lines = [HEAD, ""]
    for title, names in GROUPS.items():
        lines += [f"{title}: " + ", ".join(f"[{name}](#{name})" for name in names) + ".", ""]
    for name, command in commands.items():
        lines += [*_command(name, command), ""]
    return "\n".join(lines).rstrip() + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"## {name}"
    yield ""
    yield str(command.help)
    yield ""
    yield "```"
    yield f"hyperscale {name} {pieces}"
    yield "```"
    params = [param for param in command.get_params(context) if "--help" not in param.opts]
    yield ""
    yield "| option | what it does |"
    yield "|---|---|"
    for param in params:
        if param.param_type_name == "argument":
            yield f"| `{_cell(str(param.metavar))}` | {_cell(param.help or '')} |"
    for param in params:
        if param.param_type_name != "argument":
            metavar = f" {param.metavar}" if param.metavar else ""
            shown = ", ".join(f"`{_cell(option)}`" for option in param.opts)
            yield f"| {shown}{_cell(metavar)} | {_cell(param.help or '')} |"
    examples = [line for line in (command.epilog or "").splitlines() if line.startswith("  ")]
    if examples:
        yield ""
        yield "```"
        yield from (line.strip() for line in examples)
        yield "```"


def _cell(text: str) -> str:
    """`<` and `*` are marks in a page; `|` ends a cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page())
