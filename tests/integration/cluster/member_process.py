"""One real member as a process: prints every change of belief as a JSON line.

Beliefs are also printed every tenth of a second when they differ from the last ones, so that a
test can wait for a view instead of an event.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys

from hyperscale.cluster.membership import Changed, MembershipConfig
from hyperscale.nodes.member.membership_shell import MemberSettings, MembershipShell
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost, run


def say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


async def main(arguments: argparse.Namespace) -> None:
    host = RealHost(arguments.id, arguments.directory)
    config = MembershipConfig(
        cluster=arguments.cluster,
        probe_interval_s=0.3,
        probe_timeout_s=0.15,
        gossip_interval_s=0.05,
        exchange_interval_s=2.0,
        reconnect_interval_s=1.0,
        seed_retry_s=0.2,
        seed_retry_max_s=1.0,
        leave_s=2.0,
    )
    shell = MembershipShell(
        host,
        MemberSettings(
            node_id=arguments.id,
            bind_udp=Address("127.0.0.1", arguments.port),
            bind_tcp=Address("127.0.0.1", arguments.port),
            seeds=tuple(("127.0.0.1", port) for port in arguments.seeds),
        ),
        config,
    )
    shell.on_change(lambda event: told(event))
    await shell.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    say(ready=arguments.id, incarnation=shell.me.incarnation)
    last: object = None
    while not stop.is_set():
        now = {m.node_id: m.state.name for m in shell.core.members() if m.confirmed}
        view = {"view": now, "incarnation": shell.me.incarnation, "refused": refused(shell)}
        if view != last:
            say(**view)
            last = view
        await asyncio.sleep(0.1)
    await shell.leave()
    shell.stop()
    await host.stop()
    say(stopped=arguments.id, tasks=host.tasks.names())


def told(event: Changed) -> None:
    say(change=event.change.value, subject=event.node.node_id, via=event.via.value)


def refused(shell: MembershipShell) -> list[str]:
    return sorted(name for name in shell.counts if name.startswith("refused"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("id")
    parser.add_argument("directory")
    parser.add_argument("port", type=int)
    parser.add_argument("seeds", type=int, nargs="*")
    parser.add_argument("--cluster", default="test")
    run(main(parser.parse_args()))
