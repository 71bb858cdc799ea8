"""Commands whose `--help` fits a screen: options in groups, one line each, examples as typed.

An option shows its short and its first long name; further names are aliases for people who come
from other tools and stay out of the way. The group is the option's `rich_help_panel`.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from hyperscale.errors import ExitCode, HyperscaleError

NAME_COLUMN = 26


class Stopped(HyperscaleError):
    exit_code = ExitCode.STOPPED


def names_of(param: Any) -> str:
    short = next((opt for opt in param.opts if not opt.startswith("--")), None)
    long = next((opt for opt in param.opts if opt.startswith("--")), None)
    names = f"{short}, {long}" if short and long else f"    {long}" if long else str(short)
    return f"{names} {param.metavar}" if param.metavar else names


def write_rows(
    title: str, rows: list[tuple[str, str]], formatter: Any, column: int = NAME_COLUMN
) -> None:
    formatter.write(f"{title}:\n")
    for name, text in rows:
        gap = " " * max(2, column - len(name))
        formatter.write(f"  {name}{gap}{text}\n")


class _AsTyped:
    """Reads nothing into a value: every option here takes text and is read by our own code.

    typer reads through pydantic since 0.29, whose import costs 0.1 s between enter and the first
    request. Other versions do not look at it.
    """

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        return value


def as_typed(params: list[Any]) -> list[Any]:
    for param in params:
        param._runtime_param = _AsTyped()
    return params


class CompactCommand(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return as_typed(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        words = [
            str(param.metavar) if param.required else f"[{param.metavar}]"
            for param in self.get_params(ctx)
            if param.param_type_name == "argument"
        ]
        return [*words, "[OPTIONS]"]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:  # typer would end with 130 and say nothing
            raise Stopped("stopped before there were results") from interrupt

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param in self.get_params(ctx):
            if param.hidden or "--help" in param.opts:
                continue
            if param.param_type_name == "argument":
                groups["Arguments"].append((str(param.metavar), param.help or ""))
            else:
                title = param.rich_help_panel or "Options"
                groups.setdefault(title, []).append((names_of(param), param.help or ""))
        formatter.write("\n")
        for title, rows in groups.items():
            if rows:
                write_rows(title, rows, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write(f"\n{(self.epilog or '').strip()}\n")
