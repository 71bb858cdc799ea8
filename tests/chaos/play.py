"""One round, inside namespaces of its own: a cluster, a job, its faults, and what came of it.

`python -m tests.chaos.play ROUND FOLDER` under `unshare` (see `network`); `runner` starts it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import psutil

from tests.chaos import report as told
from tests.chaos.hands import Hands
from tests.chaos.judge import Evidence, Report, judge
from tests.chaos.loads import NAME, Job
from tests.chaos.network import Network
from tests.chaos.scenarios import round_named
from tests.chaos.schedule import CLIENT, MANAGERS, OUTAGE_S_MAX, Fault, Round, outage_s
from tests.chaos.target import Hit, hits
from tests.integration.cli.program import environment
from tests.integration.cluster.fleet import Fleet, until

TARGET, PORT = "target", 8080
DISK_MB = 16  # of a manager; a round writes less than one
# A few times faster than life, so that a fault, its discovery and what follows fit into a round.
SETTINGS = """
[worker]
fence_s = 3

[jobs]
reschedule_s = 5
limit_grace_s = {grace_s:g}
"""
# After the plan's end: for elections, for work that moved and iterations done again.
PATIENCE_S = 90.0
# Load that outlives its job shows within this; a worker that is cut off ends it sooner.
WATCH_S = 3.0
# Within this every worker with load has made a request.
NAMED_S = 0.4
TICK_S = 0.02
IDLE_S = 30.0


class Client:
    """A command in the client's namespace, and the moment when it ended."""

    def __init__(self, folder: Path, network: Network, name: str, *words: str) -> None:
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [*network.inside(CLIENT), sys.executable, "-m", "hyperscale", *words],
                cwd=folder,
                env=environment(XDG_RUNTIME_DIR=str(folder)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.ended_at: float | None = None
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self._process.wait()
        self.ended_at = time.monotonic()

    @property
    def code(self) -> int | None:
        return self._process.returncode if self.ended_at is not None else None

    @property
    def said(self) -> str:
        return self._out.read_text() + self._err.read_text()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


class Standstill:
    """How long this machine stood still at most: then nothing that was late is anybody's fault."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        before = time.monotonic()
        while True:
            time.sleep(TICK_S)
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - before - TICK_S)
            before = now


class Play:
    def __init__(self, round_: Round, folder: Path) -> None:
        self._round = round_
        self._folder = folder
        self._log = folder / "hits"
        managers = ("m1", "m2", "m3")
        workers = [f"w{number}" for number in range(1, round_.workers + 1)]
        self._network = Network(folder / "net", (TARGET, CLIENT, *managers, *workers))
        self._began = 0.0
        self._cancelled: Client | None = None

    def run(self) -> Evidence:
        self._network.build()
        (self._folder / "hyperscale.toml").write_text(SETTINGS.format(grace_s=self._round.grace_s))
        place = self._network
        words = (place.host(TARGET), str(PORT), str(self._log))
        target = subprocess.Popen(
            [*place.inside(TARGET), sys.executable, "-m", "tests.chaos.target", *words]
        )
        round_ = self._round
        try:
            with Fleet(
                self._folder,
                managers=3,
                workers=round_.workers,
                cores=round_.cores,
                tls=True,
                place=place,
            ) as fleet:
                for manager in fleet.managers:
                    _small_disk(self._folder / manager.name)
                fleet.start()
                until(lambda: all(m.logged("ready") for m in fleet.managers), "all managers")
                return self._judged_job(fleet)
        finally:
            target.kill()
            target.wait()

    def _judged_job(self, fleet: Fleet) -> Evidence:
        job = self._round.job
        text = job.text(self._network.host(TARGET), PORT, self._round.grace_s)
        (self._folder / "load.py").write_text(text)
        leader = fleet.leader().name
        psutil.cpu_percent()
        client = Client(
            *(self._folder, self._network, "run", "run", "load.py"),
            *map(str, fleet.there),
            *("--json", "results.json"),
        )
        until(lambda: hits(self._log) or client.code is not None, "the first request")
        self._began = next((hit.at_s for hit in hits(self._log)), time.monotonic())
        self._wait(lambda: False, NAMED_S)
        names = self._roles(fleet, leader)
        hands = Hands(fleet, self._network, names, self._now_s)
        self._do_faults(fleet, hands, client)
        self._wait(lambda: client.code is not None, self._round.job.planned_s + PATIENCE_S)
        cpu_used = psutil.cpu_percent() / 100
        self._wait(lambda: False, self._now_s() + WATCH_S)
        for fault in self._round.faults:
            hands.end(fault)
        left_over = _left_over(fleet)
        evidence = Evidence(
            job=job,
            hits=self._hits(),
            report=self._report(client, job),
            harms=hands.harms,
            majority_and_worker_live=outage_s(self._round) <= OUTAGE_S_MAX,
            left_over=left_over,
            names=names,
            cpu_used=cpu_used,
        )
        client.end()
        return evidence

    def _roles(self, fleet: Fleet, leader: str) -> dict[str, str]:
        """Who is who in the schedule. Workers without load come last."""
        followers = [node.name for node in fleet.managers if node.name != leader]
        busy = [hit.worker for hit in self._hits()]
        idle = [node.name for node in fleet.workers]
        workers = list(dict.fromkeys((*busy, *idle)))
        return {
            CLIENT: CLIENT,
            **dict(zip(MANAGERS, (leader, *followers), strict=True)),
            **dict(zip(self._round.worker_names, workers, strict=True)),
        }

    def _now_s(self) -> float:
        return time.monotonic() - self._began

    def _wait(self, condition: Callable[[], bool], until_s: float) -> None:
        while not condition() and self._now_s() < until_s:
            time.sleep(0.05)

    def _do_faults(self, fleet: Fleet, hands: Hands, client: Client) -> None:
        """In the order of their times, until the job is over."""
        for at_s, what, fault in self._deeds():
            self._wait(lambda: client.code is not None, at_s)
            if client.code is not None:
                return
            if fault is not None:
                (hands.begin if what == "begin" else hands.end)(fault)
            else:
                job_id = fleet.only_job().job_id
                self._cancelled = Client(
                    *(self._folder, self._network, "cancel", "cancel", job_id),
                    *(word for address in fleet.addresses for word in ("--manager", address)),
                    *("--certs", str(fleet.certs)),
                )

    def _deeds(self) -> list[tuple[float, str, Fault | None]]:
        faults = self._round.faults
        deeds: list[tuple[float, str, Fault | None]] = [(f.at_s, "begin", f) for f in faults]
        deeds += [(f.until_s, "end", f) for f in faults]
        if self._round.job.cancel_at_s is not None:
            deeds.append((self._round.job.cancel_at_s, "cancel", None))
        return sorted(deeds, key=lambda deed: deed[0])

    def _hits(self) -> list[Hit]:
        found = sorted(hits(self._log), key=lambda hit: hit.at_s)
        name = self._network.name
        return [
            Hit(hit.at_s - self._began, name(hit.worker), hit.workflow, hit.user) for hit in found
        ]

    def _report(self, client: Client, job: Job) -> Report:
        if client.code is None or client.ended_at is None:
            return Report(None, said=client.said)
        ends = [client.ended_at]
        if self._cancelled is not None and self._cancelled.code == 0:
            ends.append(self._cancelled.ended_at or client.ended_at)
        told_s = min(ends) - self._began
        file = self._folder / "results.json"
        if not file.exists():
            return Report(client.code, told_s, said=client.said, has_results=False)
        results = json.loads(file.read_text())
        counts: Counter[tuple[str, str]] = Counter()
        failed = 0
        for workflow in results["workflows"]:
            for step in workflow["steps"]:
                # Calls under way when a worker ended its load were given up by itself.
                given_up = [e["count"] for e in step["errors"] if e["outcome"] == "cancelled"]
                failed += step["failed"] - sum(given_up)
                for request in step["requests"]:
                    worker = self._network.name(request["name"].removeprefix(NAME))
                    counts[workflow["name"], worker] += request["count"]
        return Report(
            client.code,
            told_s,
            results["coverage"],
            dict(counts),
            failed,
            {one["name"]: one["interrupted_iterations"] for one in results["workflows"]},
            tuple(results["lost"]),
            client.said,
        )


def _small_disk(folder: Path) -> None:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    subprocess.run(command, check=True)


def _left_over(fleet: Fleet) -> list[str]:
    """Cores that are not free again, and nodes that ended for no reason."""
    found = [
        f"{node.name} ended: {node.said[-400:]}" for node in fleet.nodes.values() if not node.alive
    ]
    end = time.monotonic() + IDLE_S
    while time.monotonic() < end:
        views = fleet.try_to(lambda cluster: cluster.workers(within_s=2.0))
        if views is not None and views.leader and views.free_cores == views.total_cores:
            return found
        time.sleep(0.2)
    return [*found, f"cores are not free {IDLE_S:g} s after the end"]


def _end_with_the_runner() -> None:
    """Our end is the end of everything in our namespaces."""
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    threading.Thread(target=_end_with_the_runner, daemon=True).start()
    round_, folder = round_named(sys.argv[1]), Path(sys.argv[2])
    standstill = Standstill()
    evidence = Play(round_, folder).run()
    findings = judge(evidence)
    told.write_lines(folder / "report.txt", told.lines(round_, evidence, findings))
    verdict = {
        "summary": told.summary(evidence),
        "findings": [asdict(one) for one in findings],
        "stood_still_s": standstill.longest_s,
    }
    (folder / "verdict.json").write_text(json.dumps(verdict))


if __name__ == "__main__":
    main()
