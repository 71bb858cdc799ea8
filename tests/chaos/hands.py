"""Hands that do what a schedule says to real nodes, and undo it. They note what was really done."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from tests.chaos.judge import Harm, HarmKind
from tests.chaos.network import Network
from tests.chaos.schedule import CLIENT, Edge, Fault
from tests.integration.cluster.fleet import Fleet, NodeProcess

FILLER = "filler"


class Hands:
    def __init__(
        self, fleet: Fleet, network: Network, names: dict[str, str], clock: Callable[[], float]
    ) -> None:
        """`names`: who has which role of the schedule."""
        self._names = names
        self._fleet = fleet
        self._network = network
        self._clock = clock
        self._begun: dict[Fault, list[Harm]] = {}
        self.harms: list[Harm] = []

    def begin(self, fault: Fault) -> None:
        at_s = self._clock()
        if fault.kind == "cut":
            edges = self._edges(fault)
            self._network.cut(edges, fault.protocol, fault.loss)
            hurt: list[tuple[str, HarmKind]] = [(name, "cut") for name in self._cut_off(edges)]
        else:
            node = self._fleet[self._names[fault.node]]
            hurt = [(node.name, self._hurt(fault, node))]
        self._begun[fault] = [Harm(name, kind, at_s, at_s) for name, kind in hurt]

    def end(self, fault: Fault) -> None:
        """Safe to call for what was not begun."""
        harms = self._begun.pop(fault, None)
        if harms is None:
            return
        if fault.kind == "cut":
            self._network.heal(self._edges(fault), fault.protocol, fault.loss)
        elif fault.kind != "generators":
            self._mend(fault, self._fleet[self._names[fault.node]])
        now_s = self._clock()
        self.harms += [Harm(h.node, h.kind, h.from_s, now_s) for h in harms]

    def _hurt(self, fault: Fault, node: NodeProcess) -> HarmKind:
        if fault.kind == "generators":
            for child in node.children()[: None if fault.whole else 1]:
                _signal(child, signal.SIGKILL)
            return "generators"
        if fault.kind == "disk":
            _fill(self._fleet.folder / node.name)
            return "disk"
        if fault.kind == "stop":
            # The node first: it must not see its generators fall silent.
            if node.alive and not fault.generators_only:
                node.signal(signal.SIGSTOP)
            for child in node.children() if fault.whole else ():
                _signal(child, signal.SIGSTOP)
            return "stopped"
        if not node.alive:
            return "killed"
        if fault.whole:
            node.kill()
        else:
            node.signal(signal.SIGKILL)
            node.exit_code()
        return "killed"

    def _mend(self, fault: Fault, node: NodeProcess) -> None:
        if fault.kind == "stop":
            for child in node.children():
                _signal(child, signal.SIGCONT)
            if node.alive:
                node.signal(signal.SIGCONT)
            return
        if fault.kind == "disk":
            (self._fleet.folder / node.name / FILLER).unlink()
        if not node.alive:  # a manager whose disk is full ends
            node.start()

    def _cut_off(self, edges: list[Edge]) -> list[str]:
        """Between a worker and a manager it is the worker; a client is no node."""
        between = [edge for edge in edges if CLIENT not in edge]
        workers = {node.name for node in self._fleet.workers}
        hurt = {end for edge in between for end in (workers.intersection(edge) or edge)}
        return sorted(hurt)

    def _edges(self, fault: Fault) -> list[Edge]:
        return [(self._names[a], self._names[b]) for a, b in fault.edges]


def _signal(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _fill(folder: Path) -> None:
    with (folder / FILLER).open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(os.urandom(4096)):
            pass
