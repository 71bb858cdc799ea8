"""The program: its commands, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from hyperscale import __version__
from hyperscale.cli import streams
from hyperscale.cli.attach import attach, results
from hyperscale.cli.certs import certs
from hyperscale.cli.command import CompactCommand, CompactGroup
from hyperscale.cli.compare import compare
from hyperscale.cli.cron import cron
from hyperscale.cli.demo import demo
from hyperscale.cli.dev import dev
from hyperscale.cli.job import job
from hyperscale.cli.jobs import cancel, jobs, logs, pause, resume, scale, status, workers
from hyperscale.cli.manager import manager
from hyperscale.cli.members import members
from hyperscale.cli.new import new
from hyperscale.cli.node import node
from hyperscale.cli.ping import ping
from hyperscale.cli.report import report
from hyperscale.cli.run import run
from hyperscale.cli.schedule import schedule
from hyperscale.cli.scheduler import scheduler
from hyperscale.cli.sim import sim
from hyperscale.cli.submit import submit
from hyperscale.cli.wal import wal
from hyperscale.cli.worker import worker
from hyperscale.errors import BadInput, ExitCode, HyperscaleError, RunFailed
from hyperscale.ui.errors import print_error
from hyperscale.workload.secrets import mask

PROGRAM = "hyperscale"

# typer brings its own copy of click from 0.20 on; its base error is found by inheritance.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name=PROGRAM,
    cls=CompactGroup,
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


_EXAMPLES = {
    "run": """
Examples:
  hyperscale run https://staging.example.com/ -u 50 -d 30s
  hyperscale run test.py Shop -u 100 -d 1m --threshold "p(95)<300" --html r.html
Each option is also read from HYPERSCALE_<OPTION>, e.g. HYPERSCALE_VUS=50.
""",
    "new": """
Example:
  hyperscale new test.py --url https://staging.example.com/
""",
    "ping": """
Example:
  hyperscale ping https://example.com/api -H "Accept: application/json"
""",
    "demo": """
Examples:
  hyperscale demo --html report.html
  hyperscale demo --serve --port 8080   (try: hyperscale ping :8080/json)
""",
    "report": """
Example:
  hyperscale report results.json -o report.html
""",
    "compare": """
Example:
  hyperscale compare before.json after.json --tolerance 5%
Exits with 0 when nothing got worse, with 99 when something did.
""",
    "certs": """
Examples:
  hyperscale certs certs --cluster shop --env prod --dc eu-1 -n manager:m1 -n worker:w1
""",
    "node": """
Examples:
  hyperscale node --id a --bind 127.0.0.1:7000 --plaintext
  hyperscale node --id b --bind 10.0.0.2:7000 --seed 10.0.0.1:7000 --certs certs
Each option is also read from HYPERSCALE_NODE_<OPTION> and [node] of hyperscale.toml.
""",
    "submit": """
Examples:
  hyperscale submit test.py --manager 10.0.0.1 --certs certs
  hyperscale submit test.py --manager 10.0.0.1 --certs certs --detach
The cluster's options are also read from HYPERSCALE_CLUSTER_<OPTION> and [cluster] of
hyperscale.toml, those of the run as for hyperscale run.
""",
    "attach": """
Example:
  hyperscale attach 3f2a1b4c5d6e7f8 --html report.html
""",
    "results": """
Example:
  hyperscale results 3f2a1b4c5d6e7f8 -o results.json -o report.html
Exits as the run did.
""",
    "status": """
Example:
  hyperscale status 3f2a1b4c5d6e7f8 --manager 10.0.0.1 --certs certs
""",
    "logs": """
Example:
  hyperscale logs 3f2a1b4c5d6e7f8
""",
    "jobs": """
Example:
  hyperscale jobs --manager 10.0.0.1 --certs certs
""",
    "workers": """
Examples:
  hyperscale workers
  hyperscale workers --job 3f2a1b4c5d6e7f8
""",
    "cancel": """
Example:
  hyperscale cancel 3f2a1b4c5d6e7f8
""",
    "pause": """
Example:
  hyperscale pause 3f2a1b4c5d6e7f8
""",
    "resume": """
Example:
  hyperscale resume 3f2a1b4c5d6e7f8
""",
    "scale": """
Examples:
  hyperscale scale 3f2a1b4c5d6e7f8 --vus 200
  hyperscale scale 3f2a1b4c5d6e7f8 --vus +10
""",
    "dev": """
Example:
  hyperscale dev --managers 3 --workers 2
  hyperscale run test.py --cluster 127.0.0.1   (in another terminal)
""",
    "manager": """
Example:
  hyperscale manager --id m1 --bind 10.0.0.1:7000 --seed 10.0.0.2:7000 --seed 10.0.0.3:7000 \\
    --voters m1,m2,m3 --certs certs --secret-file secret
  hyperscale manager --set jobs.queue_jobs_max=50 --show-settings
Each option is also read from HYPERSCALE_NODE_<OPTION> and [node] of hyperscale.toml; [manager],
[jobs] and [records] hold what has no option.
""",
    "worker": """
Example:
  hyperscale worker --id w1 --bind 10.0.0.9:7000 --seed 10.0.0.1:7000 --certs certs \\
    --secret-file secret
Each option is also read from HYPERSCALE_NODE_<OPTION> and [node] of hyperscale.toml, its own
ones from HYPERSCALE_WORKER_<OPTION> and [worker]. `--show-settings` tells what holds, and why.
""",
    "members": """
Examples:
  hyperscale members 127.0.0.1:7000 --watch
  hyperscale members 10.0.0.1:7000 --certs certs --name client
""",
    "wal": """
Examples:
  hyperscale wal verify data/log
  hyperscale wal dump data/log --from 1200 --limit 20
""",
    "cron": """
Examples:
  hyperscale cron "30 2 * * *" --tz America/New_York
  hyperscale cron --check schedules.txt
""",
    "scheduler": """
Examples:
  hyperscale scheduler                  everything in one process, one file
  hyperscale scheduler worker --store redis://10.0.0.1:6379/0 --slots 8
  hyperscale scheduler doctor           says what is stuck, drifting, starving or skewed
Its options are also read from HYPERSCALE_SCHEDULER_<OPTION> and [scheduler] of hyperscale.toml.
""",
    "schedule": """
Examples:
  hyperscale schedule add nightly --cron "0 2 * * *" --loadtest test.py --overlap skip
  hyperscale schedule list
""",
    "job": """
Examples:
  hyperscale job submit probe --http https://example.com/ --timeout 30
  hyperscale job list --state FAILED
""",
    "sim": """
Examples:
  hyperscale sim election --seeds 1..500
  hyperscale sim membership --nodes 100 --seeds 17 --trace
""",
}

_TESTS: tuple[Callable[..., int], ...] = (run, new, ping, demo, report, compare)
_JOBS: tuple[Callable[..., int], ...] = (
    dev, submit, attach, jobs, status, logs, results, workers, pause, resume, scale, cancel,
)  # fmt: skip
_NODES: tuple[Callable[..., int], ...] = (manager, worker, certs, members, node, wal, sim)
_CLOCK: tuple[Callable[..., int], ...] = (scheduler, schedule, job, cron)
_GROUPS = {"Tests": _TESTS, "On a cluster": _JOBS, "By the clock": _CLOCK, "Nodes": _NODES}

for _group, _command in ((name, one) for name, several in _GROUPS.items() for one in several):
    app.command(
        cls=CompactCommand,
        rich_help_panel=_group,
        epilog=_EXAMPLES[_command.__name__],
        context_settings={"help_option_names": ["-h", "--help"]},
    )(_command)


def execute(argv: Sequence[str]) -> int:
    """Carry out one command line; whatever happens ends in an exit code."""
    streams.secure()
    debug = "--debug" in argv or bool(os.environ.get("HYPERSCALE_DEBUG"))
    streams.debug = debug
    try:
        return int(app(args=_expand(argv), prog_name=PROGRAM, standalone_mode=False) or 0)
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
    sentence = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    command = f"{PROGRAM} {argv[0]}" if argv and argv[0] in _EXAMPLES else PROGRAM
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
