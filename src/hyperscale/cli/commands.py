"""The commands by name: in which group of the help each stands, its examples, where it lives.

A command is imported when it is asked for: between enter and the first request nobody waits for
the other thirty.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import typer
import typer.main

from hyperscale.cli.command import CompactCommand

# By group, in the order of the help; with their modules in `hyperscale.cli`.
GROUPS: dict[str, dict[str, str]] = {
    "Tests": {
        "run": "run",
        "new": "new",
        "record": "record",
        "ping": "ping",
        "demo": "demo",
        "report": "report",
        "compare": "compare",
        "web": "web",
    },
    "On a cluster": {
        "dev": "dev",
        "submit": "submit",
        "attach": "attach",
        "jobs": "jobs",
        "status": "jobs",
        "logs": "jobs",
        "results": "attach",
        "workers": "workers",
        "datacenters": "datacenters",
        "route": "datacenters",
        "drain": "workers",
        "pause": "jobs",
        "resume": "jobs",
        "scale": "jobs",
        "cancel": "jobs",
    },
    "By the clock": {
        "scheduler": "scheduler",
        "schedule": "schedule",
        "queue": "queue",
        "cron": "cron",
    },
    "Nodes": {
        "gate": "gate",
        "manager": "manager",
        "worker": "worker",
        "certs": "certs",
        "members": "members",
        "node": "node",
        "wal": "wal",
        "sim": "sim",
    },
}

EXAMPLES = {
    "run": """
Examples:
  hyperscale run https://staging.example.com/ -u 50 -d 30s
  hyperscale run test.py Shop -u 100 -d 1m --threshold "p(95)<300" --html r.html
Each option is also read from HYPERSCALE_<OPTION>, e.g. HYPERSCALE_VUS=50.
""",
    "new": """
Examples:
  hyperscale new test.py --url https://staging.example.com/
  hyperscale new --from shop.har
""",
    "record": """
Example:
  hyperscale record https://staging.example.com/ shop.py
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
Examples:
  hyperscale compare before.json after.json --tolerance 5%
  hyperscale compare mon.json tue.json wed.json --html trend.html
Exits with 0 when nothing got worse, with 99 when something did.
""",
    "web": """
Examples:
  hyperscale web out/
  hyperscale web --cluster 10.0.0.1 --certs certs   (its runs take place there)
  HYPERSCALE_WEB_TOKEN=... hyperscale web --bind 0.0.0.0:8089
""",
    "certs": """
Examples:
  hyperscale certs certs --cluster shop --env prod --dc eu-1 -n manager:m1 -n worker:w1
  hyperscale certs list certs
  hyperscale certs renew certs w1
  hyperscale certs revoke certs w1
""",
    "node": """
Examples:
  hyperscale node --id a --bind 127.0.0.1:7000 --cluster shop --env dev --plaintext
  hyperscale node --id b --bind 10.0.0.2:7000 --seed 10.0.0.1:7000 --cluster shop --env prod \\
    --certs certs --secret-file certs/secret
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
    "datacenters": """
Examples:
  hyperscale datacenters --manager 10.0.9.1 --certs certs
  hyperscale datacenters --watch
Ask a gate: the answer is what this one knows, which another may see otherwise.
""",
    "route": """
Examples:
  hyperscale route --explain --count 2
  hyperscale route --explain test.py --dc eu --policy prefer
Nothing is run or remembered.
""",
    "drain": """
Examples:
  hyperscale drain w1
  hyperscale drain w1 --undo
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
  hyperscale dev --datacenters 3 --gates 3   (each with its own managers and workers)
  hyperscale run test.py --cluster 127.0.0.1   (in another terminal)
""",
    "gate": """
Example:
  hyperscale gate --id g1 --bind 10.0.9.1:7000 --seed 10.1.9.1:7000 --gates g1,g2,g3 \\
    --datacenter eu=10.0.0.1:7000 --datacenter us=10.1.0.1:7000 \\
    --cluster shop --env prod --dc eu --certs certs --secret-file certs/secret
A datacenter may be named once for each of its managers; one is enough, the others are learned.
""",
    "manager": """
Example:
  hyperscale manager --id m1 --bind 10.0.0.1:7000 --seed 10.0.0.2:7000 --seed 10.0.0.3:7000 \\
    --cluster shop --env prod --voters m1,m2,m3 --certs certs --secret-file certs/secret \\
    --manager-secret-file certs/manager-secret
  hyperscale manager --set jobs.queue_jobs_max=50 --show-settings
Each option is also read from HYPERSCALE_NODE_<OPTION> and [node] of hyperscale.toml; [manager],
[jobs] and [records] hold what has no option.
""",
    "worker": """
Example:
  hyperscale worker --id w1 --bind 10.0.0.9:7000 --seed 10.0.0.1:7000 --cluster shop \\
    --env prod --certs certs --secret-file certs/secret
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
Which scheduler is also read from HYPERSCALE_SCHEDULER_<OPTION> and [scheduler] of hyperscale.toml.
""",
    "queue": """
Examples:
  hyperscale queue submit probe --http https://example.com/ --timeout 30
  hyperscale queue list --state FAILED
Which scheduler is also read from HYPERSCALE_SCHEDULER_<OPTION> and [scheduler] of hyperscale.toml.
""",
    "sim": """
Examples:
  hyperscale sim election --seeds 1..500
  hyperscale sim membership --nodes 100 --seeds 17 --trace
""",
}

MOVED = {
    "job": (
        "the scheduler's jobs are now under hyperscale queue",
        "hyperscale queue takes the same actions; jobs of a cluster are under hyperscale jobs",
    ),
}
"""Commands that people may still type, and what they are told."""


class Commands(Mapping[str, Any]):
    """As typer asks a group for them."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}
        self._modules = {
            name: module for group in GROUPS.values() for name, module in group.items()
        }

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, self._modules[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def _load(name: str, module: str) -> Any:
    function = getattr(importlib.import_module(f"hyperscale.cli.{module}"), name)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(
        name=name,
        cls=CompactCommand,
        epilog=EXAMPLES[name],
        context_settings={"help_option_names": ["-h", "--help"]},
    )(function)
    return typer.main.get_command(alone)
