"""The program: its commands, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import os
import re
import textwrap
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hyperscale import __version__
from hyperscale.cli import streams
from hyperscale.cli.command import as_typed, names_of, write_rows
from hyperscale.cli.commands import EXAMPLES, GROUPS, MOVED, Commands
from hyperscale.errors import BadInput, ExitCode, HyperscaleError, RunFailed
from hyperscale.ui.errors import print_error
from hyperscale.workload.secrets import mask

if TYPE_CHECKING:
    from hyperscale.engine.spawning import EarlyChildren

PROGRAM = "hyperscale"
NAMES_WIDTH = 78

# typer brings its own copy of click from 0.20 on; its base error is found by inheritance.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]


class _Program(TyperGroup):
    """The first group of commands is explained, of the others their names are enough here."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"commands": Commands()})

    def get_params(self, ctx: Any) -> list[Any]:
        return as_typed(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["COMMAND", "..."]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        (title, explained), *others = GROUPS.items()
        formatter.write("\n")
        rows = [(name, str(self.commands[name].help)) for name in explained]
        write_rows(title, rows, formatter, column=10)
        for title, commands in others:
            names = f"{title}: {' '.join(commands)}"
            lines = textwrap.wrap(names, NAMES_WIDTH, subsequent_indent=" " * len(f"{title}: "))
            formatter.write("".join(f"{line}\n" for line in lines))
        formatter.write("\n")
        options = [
            (names_of(param), re.split("[,.]", param.help or "")[0].lower())
            for param in self.get_params(ctx)
        ]
        write_rows("Options", options, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write(f"\n{(self.epilog or '').strip()}\n")


app = typer.Typer(
    name=PROGRAM,
    cls=_Program,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        streams.say(f"hyperscale {__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    help="Load tests as Python classes.",
    epilog="""
First steps:
  hyperscale demo                       see one run, nothing else needed
  hyperscale new test.py                write a test to start from
  hyperscale run test.py -u 50 -d 30s   run it with 50 virtual users for 30 s

hyperscale COMMAND --help explains a command.
""",
)
def _program(
    ctx: typer.Context,
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        streams.say(ctx.get_help())


def execute(argv: Sequence[str], early: EarlyChildren | None = None) -> int:
    """Carry out one command line; whatever happens ends in an exit code. `early` are generator
    processes for it."""
    debug = "--debug" in argv or bool(os.environ.get("HYPERSCALE_DEBUG"))
    streams.debug = debug
    try:
        return int(
            app(args=_expand(argv), prog_name=PROGRAM, standalone_mode=False, obj=early) or 0
        )
    except HyperscaleError as error:
        return _fail(error, debug)
    except _ClickError as error:
        return _fail(_usage(error, argv), debug)
    except KeyboardInterrupt:
        return int(ExitCode.STOPPED)
    except Exception as error:  # noqa: BLE001 - the last line: a person never sees a bare traceback
        return _fail(
            RunFailed(
                f"hyperscale itself failed with {type(error).__name__}: {error}",
                "run it again with --debug to see where, and please report it",
            ),
            debug,
            cause=error,
        )
    finally:
        if early is not None:
            early.end()
        streams.close()


def _expand(argv: Sequence[str]) -> list[str]:
    """`--http-debug` alone means headers; typer has no options with an optional value."""
    end = list(argv).index("--") if "--" in argv else len(argv)
    return [
        f"{word}=headers" if word == "--http-debug" and index < end else word
        for index, word in enumerate(argv)
    ]


def _usage(error: Exception, argv: Sequence[str]) -> BadInput:
    """A typing mistake in typer's words, as one sentence of ours."""
    if argv and argv[0] in MOVED:
        return BadInput(*MOVED[argv[0]])
    sentence = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    command = f"{PROGRAM} {argv[0]}" if argv and argv[0] in EXAMPLES else PROGRAM
    usage = BadInput(
        sentence[:1].lower() + sentence[1:].rstrip("."), f"see {command} --help for what it takes"
    )
    usage.__cause__ = error
    return usage


def _fail(error: HyperscaleError, debug: bool, cause: Exception | None = None) -> int:
    if debug:
        streams.note(mask("".join(traceback.format_exception(cause or error))).rstrip())
    print_error(error)
    return int(error.exit_code)
