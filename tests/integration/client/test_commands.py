"""The commands of a cluster as a user types them, against a manager that follows a script."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from hyperscale.nodes.protocol.jobs import SteerJob
from tests.integration.cli.program import (
    Ended,
    Running,
    assert_refused,
    hyperscale,
    write_workflow,
)
from tests.integration.client.scripted import Book, Job, in_a_thread


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def manager(book: Book, tmp_path: Path) -> Iterator[str]:
    with in_a_thread(book, tmp_path / "managers") as address:
        yield address


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    return write_workflow(tmp_path, "http://127.0.0.1:1/")


class Program:
    """`hyperscale` in a place of its own, so that no dev cluster of the developer is found."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._env = {"XDG_RUNTIME_DIR": str(folder)}

    def __call__(self, *words: object, **env: str) -> Ended:
        return hyperscale(*words, cwd=self._folder, **self._env, **env)

    def running(self, *words: object) -> Running:
        return Running(*words, cwd=self._folder, **self._env)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def plays(job: Job) -> None:
    job.become("running", Try="running")
    job.load("Try", 40, failed=1)
    job.end("Try")
    job.finish()


@pytest.mark.parametrize("words", [("run", "--cluster"), ("submit", "--manager")])
def test_a_run_on_a_cluster_ends_as_a_local_one(
    words: tuple[str, str], book: Book, manager: str, program: Program, test_file: Path
) -> None:
    book.on_job = plays
    ended = program(words[0], test_file, words[1], manager, "-u", 7, "-o", "out.json", "-e", "A=b")
    assert ended.code == ExitCode.PASSED, ended
    job = book.only
    assert f"job {job.ask.job_id} accepted by m1" in ended.err
    assert "✓ passed: 40 requests" in ended.out
    written = json.loads((test_file.parent / "out.json").read_text())
    assert written["workflows"][0]["steps"][0]["count"] == 40
    assert job.body.workflows[0].load.peak_vus == 7
    assert job.body.env == {"A": "b"}
    assert job.body.command.startswith(f"hyperscale {words[0]} ")


@pytest.mark.parametrize(
    "exit_code", [ExitCode.LOAD_LOST, ExitCode.THRESHOLDS_CROSSED, ExitCode.FAILED]
)
def test_the_exit_code_is_the_cluster_s(
    exit_code: ExitCode, book: Book, manager: str, program: Program, test_file: Path
) -> None:
    def ends(job: Job) -> None:
        job.load("Try", 40)
        job.end("Try")
        job.finish(exit_code=exit_code)

    book.on_job = ends
    assert program("submit", test_file, "--manager", manager, "-q").code == exit_code
    job_id = book.only.ask.job_id
    assert program("results", job_id, "--manager", manager).code == exit_code


def test_ctrl_c_stops_the_job_and_waits_for_its_end(
    book: Book, manager: str, program: Program, test_file: Path
) -> None:
    def carried_out(job: Job, ask: SteerJob) -> None:
        job.end("Try")
        job.finish("cancelled", "by hand", ExitCode.STOPPED, "signal")

    def begins(job: Job) -> None:
        job.become("running", Try="running")
        job.load("Try", 9)

    book.on_job, book.on_steer = begins, carried_out
    with program.running("run", test_file, "--cluster", manager, "--ui", "ci") as run:
        run.wait_until_said("started")
        run.signal(signal.SIGINT)
        ended = run.ended()
    assert ended.code == ExitCode.STOPPED, ended
    assert book.only.steered == [("stop", 0)]
    assert "9 requests" in ended.out


def test_leaving_before_the_cluster_answers_names_the_job(
    book: Book, manager: str, program: Program, test_file: Path
) -> None:
    book.silent = True
    with program.running("run", test_file, "--cluster", manager, "--ui", "ci") as run:
        run.wait_until(lambda: book.jobs, "a submission")
        run.signal(signal.SIGINT)
        run.wait_until_said("stopping")
        run.signal(signal.SIGTERM)  # two of the same kind might be one
        run.signal(signal.SIGINT)
        ended = run.ended()
    assert ended.code == ExitCode.STOPPED, ended
    assert f"hyperscale cancel {book.only.ask.job_id}" in ended.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_submission_names_the_job(
    number: signal.Signals, book: Book, manager: str, program: Program, test_file: Path
) -> None:
    book.silent = True
    with program.running("submit", test_file, "--manager", manager, "--detach") as submitting:
        submitting.wait_until(lambda: book.jobs, "a submission")
        submitting.signal(number)
        ended = submitting.ended()
    assert_refused(ended, f"hyperscale cancel {book.only.ask.job_id}", code=ExitCode.STOPPED)
    assert ended.out == ""


def test_a_manager_that_hangs_is_passed_over(manager: str, program: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung:  # connected by the kernel, never served
        host, port = hung.getsockname()
        ended = program("jobs", "--manager", f"{host}:{port},{manager}")
    assert (ended.code, ended.out) == (ExitCode.PASSED, "no jobs\n"), ended


def test_a_job_is_left_there_and_watched_later(
    book: Book, manager: str, program: Program, test_file: Path
) -> None:
    detached = program("submit", test_file, "--manager", manager, "--detach")
    assert detached.code == ExitCode.PASSED, detached
    job_id = detached.out.strip()
    assert list(book.jobs) == [job_id]
    assert_refused(program("results", job_id, "--manager", manager), "has no results yet", code=1)
    with program.running("attach", job_id, "--manager", manager, "--ui", "ci") as attached:
        attached.wait_until(lambda: book.only.watchers, "a watcher")
        attached.signal(signal.SIGINT)
        ended = attached.ended()
    assert ended.code == ExitCode.STOPPED
    assert f"hyperscale attach {job_id}" in ended.err
    assert book.only.steered == []
    plays(book.only)
    again = program("attach", job_id, "--manager", manager)
    assert again.code == ExitCode.PASSED, again
    assert "✓ passed: 40 requests" in again.out
    ended = program("results", job_id, "--manager", manager, "--json", "out.json")
    assert "✓ passed: 40 requests" in ended.out
    assert (test_file.parent / "out.json").exists()


@pytest.mark.parametrize(
    ("words", "said"), [((), "squeeze"), (("--lost-load", "move"), "move")], ids=["unsaid", "said"]
)
def test_a_job_says_what_becomes_of_lost_load(
    book: Book, manager: str, program: Program, test_file: Path, words: tuple[str, ...], said: str
) -> None:
    ended = program("submit", test_file, "--manager", manager, "--detach", *words)
    assert ended.code == ExitCode.PASSED, ended
    assert book.only.body.lost_load == said


def test_the_same_key_is_the_same_job(
    book: Book, manager: str, program: Program, test_file: Path
) -> None:
    words = ("submit", test_file, "--manager", manager, "--detach", "--idempotency-key")
    first = program(*words, "ci:1:0123456789abcdef")
    second = program(*words, "ci:1:0123456789abcdef")
    assert first.out == second.out
    assert "not run twice" in second.err
    assert_refused(program(*words, "ci"), "idempotency key")
    asked = ("status", "--manager", manager, "--json")
    shown = program(*asked, "--key", "ci:1:0123456789abcdef")
    assert json.loads(shown.out)["job_id"] == first.out.strip()
    assert_refused(program(*asked, "--key", "ci"), "idempotency key")
    assert_refused(program(*asked), "either its id or --key")
    assert_refused(program(*asked, first.out.strip(), "--key", "ci"), "either its id or --key")


def test_lists_for_people_and_for_scripts(
    book: Book, manager: str, program: Program, test_file: Path
) -> None:
    assert program("jobs", "--manager", manager).out == "no jobs\n"
    book.on_job = plays
    job_id = program("submit", test_file, "--manager", manager, "--detach").out.strip()

    def shown(*words: str) -> str:
        ended = program(*words, HYPERSCALE_CLUSTER_MANAGER=manager)
        assert ended.code == ExitCode.PASSED, ended
        return ended.out

    head, row = shown("jobs").splitlines()
    assert head.split()[:3] == ["JOB", "STATUS", "AGE"]
    assert row.split()[:5] == [job_id, "completed", "3s", "40", "1"]
    assert "Try" in shown("status", job_id)
    assert "PENDING → RUNNING (dispatched)" in shown("logs", job_id)
    assert shown("workers").splitlines()[0] == "1 worker, 3 of 4 cores free, leader m1"

    def read(*words: str) -> Any:
        return json.loads(shown(*words, "--json"))

    assert read("jobs")["jobs"][0]["paused"] is False
    assert read("status", job_id)["workflows"][0]["requests"] == 40
    assert read("logs", job_id) == {"Try": ["0.0 PENDING → RUNNING (dispatched)"]}
    assert read("workers")["workers"][0]["worker"] == "w1"


def test_levers(book: Book, manager: str, program: Program, test_file: Path) -> None:
    def live(job: Job) -> None:
        async def load() -> None:
            while not job.results:
                job.load("Try", 1, vus=10)
                await asyncio.sleep(0.02)

        job.become("running", Try="running")
        asyncio.get_running_loop().create_task(load())

    def cancelled(job: Job, ask: SteerJob) -> None:
        if ask.action == "cancel" and not job.results:
            job.finish("cancelled", "cancelled by ann", ExitCode.STOPPED, "signal")

    book.on_job, book.on_steer = live, cancelled
    job_id = program("submit", test_file, "--manager", manager, "--detach").out.strip()
    (Path(test_file).parent / "hyperscale.toml").write_text(f'[cluster]\nmanager = "{manager}"\n')
    assert program("pause", job_id).out == f"job {job_id} paused (1 workflow)\n"
    assert program("resume", job_id).code == ExitCode.PASSED
    assert "scaled to 15 virtual users" in program("scale", job_id, "--vus", "+5").out
    assert "scaled to 7 virtual users" in program("scale", job_id, "--vus", "-3").out
    assert "scaled to 50 virtual users" in program("scale", job_id, "--vus", "50").out
    assert_refused(program("scale", job_id, "--vus", "many"), "number of virtual users")
    assert program("scale", job_id, "--vus", "+1", "--workflow", "Try").out == (
        f"job {job_id} scaled to 11 virtual users: Try\n"
    )
    assert_refused(program("scale", job_id), "either --vus or --rate")
    assert_refused(program("scale", job_id, "--rate", "600/s"), "share of the planned rate")
    assert_refused(program("scale", job_id, "--rate", "+10%"), "no workflow of the job has", code=1)
    for _ in range(2):
        ended = program("cancel", job_id)
        assert ended.out == f"job {job_id} ended as cancelled: cancelled by ann\n"
    assert book.only.steered == [
        ("pause", 0), ("resume", 0), ("scale", 15), ("scale", 7), ("scale", 50),
        ("scale", 11), ("cancel", 0), ("cancel", 0),
    ]  # fmt: skip
    assert_refused(program("scale", job_id, "--vus", "+5"), "has ended", code=1)


def test_what_cannot_be_is_a_sentence(
    book: Book, manager: str, program: Program, test_file: Path
) -> None:
    for word in ("status", "logs", "cancel", "attach", "pause", "results"):
        assert_refused(program(word, "nope", "--manager", manager), "job nope", code=1)
    assert_refused(program("jobs"), "no manager is named")
    assert_refused(program("jobs", "--manager", "10.9.8.7"), "only TLS is spoken")
    assert_refused(program("jobs", "--manager", manager, "--cluster-id", "x"), "'x'", code=1)
    assert_refused(program("run", test_file, "--detach"), "none is named")
    assert_refused(program("run", test_file, "--lost-load", "drop"), "none is named")
    words = ("submit", test_file, "--manager", manager)
    assert_refused(program(*words, "--lost-load", "find"), "one of squeeze, move, drop")
    assert_refused(program("run", test_file, "--cluster", manager, "--once"), "--once")
    assert_refused(program("run", test_file, "--cluster", manager, "-w", "2"), "--workers")
    assert_refused(program("submit", "nothing.py", "--manager", manager), "nothing.py")
    assert book.submissions == []
