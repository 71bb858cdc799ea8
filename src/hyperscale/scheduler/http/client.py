"""A client of the scheduler's HTTP API, for programs and for the command line.

    with SchedulerClient("http://127.0.0.1:8090") as scheduler:
        job = scheduler.submit_job(name="probe", payload={"url": "https://example.com/"})
        scheduler.create_schedule(id="nightly", cron="0 2 * * *", job={"payload": {...}})

`AsyncSchedulerClient` has the same methods, awaited. Answers are plain dicts and lists as the API
gives them. A request that found nobody, or a 503, is repeated with backoff: every call may be
(submissions carry an idempotency key; a run by hand is not repeated).

It blocks, also inside somebody's event loop, so it stands on the standard library's client and not
on `runtime.http`.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import ssl
import threading
import time
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from hyperscale.cluster.overload.backoff import Backoff
from hyperscale.errors import BadInput, ExitCode, HyperscaleError, RunFailed
from hyperscale.scheduler.addresses import is_loopback, plain_url
from hyperscale.scheduler.http.local_token import found_token

DEFAULT_URL: Final = "http://127.0.0.1:8090"
TIMEOUT_S: Final = 10.0
ATTEMPTS: Final = 4
BACKOFF: Final = Backoff(base_delay_s=0.2, delay_max_s=1.0)
"""Four attempts take about a second."""

Json = dict[str, Any]


class Refused(HyperscaleError):
    """The scheduler answered with an error; `problem` is its whole answer."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(
            str(problem.get("detail") or f"the scheduler answered {status}"),
            str(problem.get("hint") or ""),
        )
        self.status = status
        self.problem = problem
        if status == 400:
            self.exit_code = ExitCode.BAD_INPUT


class Unreachable(RunFailed):
    """Nobody answered."""


class SchedulerClient:
    """Holds one connection; may be shared by threads, which then take turns."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        *,
        ca: str = "",
        plain_http: bool = False,
    ) -> None:
        """`token`: None: the one that a scheduler of this user on this machine has made, empty:
        none. `ca`: a PEM file to trust instead of the system's authorities. `plain_http`: the token
        may travel unencrypted to another machine."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(
                f"{plain_url(url)!r} is not the address of a scheduler", f"such as {DEFAULT_URL}"
            )
        if token is None:
            token = found_token(parts.hostname, _port(parts))
        if token and parts.scheme == "http" and not (plain_http or is_loopback(parts.hostname)):
            raise BadInput(
                f"the token would travel unencrypted to {parts.hostname}",
                "call it by https://, or allow that with --plain-http",
            )
        self.url = plain_url(url).rstrip("/")
        self._base = parts.path.rstrip("/")
        self._token = token
        self._lock = threading.Lock()
        self._dice = random.Random()
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(
                parts.hostname,
                _port(parts),
                timeout=timeout_s,
                context=_trusting(ca),
            )
        else:
            self._connection = http.client.HTTPConnection(
                parts.hostname, _port(parts), timeout=timeout_s
            )

    def __enter__(self) -> SchedulerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # Jobs.

    def submit_job(self, *, idempotency_key: str = "", **fields: Any) -> Json:
        """Fields as in `POST /api/v1/jobs`. Without a key one is made up, so that a repeated
        request cannot make two jobs."""
        key = idempotency_key or f"client-{uuid.uuid4()}"
        return self._object("POST", "/api/v1/jobs", {**fields, "idempotency_key": key})

    def job(self, job_id: str) -> Json:
        return self._object("GET", f"/api/v1/jobs/{_part(job_id)}")

    def jobs(self, limit: int = 100, **filters: str | None) -> list[Json]:
        """Newest first: `state`, `schedule_id`, `name`, `kind`, `worker`."""
        return list(self._pages("/api/v1/jobs", "jobs", limit, filters))

    def cancel_job(self, job_id: str) -> Json:
        return self._object("POST", f"/api/v1/jobs/{_part(job_id)}/cancel")

    def retry_job(self, job_id: str) -> Json:
        return self._object("POST", f"/api/v1/jobs/{_part(job_id)}/retry", again=False)

    def schedule_history(self, schedule_id: str, limit: int = 100) -> list[Json]:
        """What became of its runs, newest first; also of those whose jobs are no longer kept."""
        path = f"/api/v1/schedules/{_part(schedule_id)}/history"
        return list(self._pages(path, "runs", limit, {}))

    def history(self, job_id: str) -> list[Json]:
        return list(self._object("GET", f"/api/v1/jobs/{_part(job_id)}/history")["attempts"])

    def logs(self, job_id: str, fencing_token: int | None = None) -> Json:
        query = "" if fencing_token is None else f"?fencing_token={fencing_token}"
        return self._object("GET", f"/api/v1/jobs/{_part(job_id)}/logs{query}")

    def results(self, job_id: str) -> Json:
        """Of a load test, as `hyperscale run --json` writes them."""
        return self._object("GET", f"/api/v1/jobs/{_part(job_id)}/results")

    # Schedules.

    def create_schedule(self, **fields: Any) -> Json:
        return self._object("POST", "/api/v1/schedules", fields, again=False)

    def schedule(self, schedule_id: str) -> Json:
        return self._object("GET", f"/api/v1/schedules/{_part(schedule_id)}")

    def schedules(self, limit: int = 1000, after: str = "") -> list[Json]:
        """By id, those behind `after`."""
        return list(self._pages("/api/v1/schedules", "schedules", limit, {}, after))

    def change_schedule(self, schedule_id: str, **fields: Any) -> Json:
        return self._object("PUT", f"/api/v1/schedules/{_part(schedule_id)}", fields, again=False)

    def edit_schedule(self, schedule_id: str, **fields: Any) -> Json:
        """Only what shall change."""
        return self._object("PATCH", f"/api/v1/schedules/{_part(schedule_id)}", fields, again=False)

    def pause_schedule(self, schedule_id: str) -> Json:
        return self._object("POST", f"/api/v1/schedules/{_part(schedule_id)}/pause")

    def resume_schedule(self, schedule_id: str) -> Json:
        return self._object("POST", f"/api/v1/schedules/{_part(schedule_id)}/resume")

    def run_schedule(self, schedule_id: str) -> Json:
        return self._object("POST", f"/api/v1/schedules/{_part(schedule_id)}/run", again=False)

    def backfill_schedule(self, schedule_id: str, start: str, end: str) -> Json:
        body = {"start": start, "end": end}
        return self._object("POST", f"/api/v1/schedules/{_part(schedule_id)}/backfill", body)

    def preview_schedule(self, schedule_id: str, count: int = 10) -> list[str]:
        path = f"/api/v1/schedules/{_part(schedule_id)}/preview?count={count}"
        return list(self._object("GET", path)["runs"])

    def delete_schedule(self, schedule_id: str) -> Json:
        return self._object("DELETE", f"/api/v1/schedules/{_part(schedule_id)}", again=False)

    # Workers and dead letters.

    def workers(self, limit: int = 1000) -> list[Json]:
        return list(self._pages("/api/v1/workers", "workers", limit, {}))

    def drain_worker(self, worker_id: str) -> Json:
        return self._object("POST", f"/api/v1/workers/{_part(worker_id)}/drain")

    def undrain_worker(self, worker_id: str) -> Json:
        return self._object("DELETE", f"/api/v1/workers/{_part(worker_id)}/drain")

    def letters(self, limit: int = 1000) -> list[Json]:
        return list(self._pages("/api/v1/dead-letters", "letters", limit, {}))

    def replay_letter(self, job_id: str) -> Json:
        return self._object("POST", f"/api/v1/dead-letters/{_part(job_id)}/replay", again=False)

    def drop_letter(self, job_id: str) -> Json:
        return self._object("DELETE", f"/api/v1/dead-letters/{_part(job_id)}", again=False)

    # How it is.

    def overview(self) -> Json:
        return self._object("GET", "/api/v1/overview")

    def doctor(self) -> Json:
        return self._object("GET", "/api/v1/doctor")

    def emergency(self) -> Json:
        return self._object("GET", "/api/v1/emergency")

    def emergency_stop(self, reason: str = "", *, cancel_running: bool = False) -> Json:
        body = {"reason": reason, "cancel_running": cancel_running}
        return self._object("POST", "/api/v1/emergency", body)

    def emergency_resume(self) -> Json:
        return self._object("DELETE", "/api/v1/emergency")

    def audit(self, after: int = 0, limit: int = 100) -> list[Json]:
        return list(self._object("GET", f"/api/v1/audit?after={after}&limit={limit}")["rows"])

    def verify_audit(self) -> Json:
        return self._object("GET", "/api/v1/audit/verify")

    def _pages(
        self, path: str, name: str, limit: int, filters: dict[str, str | None], cursor: str = ""
    ) -> Iterator[Json]:
        left = limit
        query = {key: value for key, value in filters.items() if value}
        while left > 0:
            asked = {**query, "limit": str(min(left, 1000)), "cursor": cursor}
            answer = self._object("GET", f"{path}?{urlencode(asked)}")
            yield from answer[name]
            left -= len(answer[name])
            cursor = answer["cursor"]
            if not cursor:
                return

    def _object(self, method: str, path: str, body: object = None, *, again: bool = True) -> Json:
        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1 or not again
            try:
                status, answer = self._exchange(method, path, body)
            except ssl.SSLCertVerificationError as error:
                raise Unreachable(
                    f"{self.url} is not trusted: {error.verify_message}",
                    "name the authority of its certificate with --ca FILE",
                ) from error
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise Unreachable(
                        f"no scheduler answers at {self.url}: {error}",
                        "start one with hyperscale scheduler, or name another with --url",
                    ) from error
            else:
                if status < 400:
                    return answer
                if status != 503 or last:
                    raise Refused(status, answer)
            time.sleep(BACKOFF.delay_s(attempt, self._dice))
        raise AssertionError("the last attempt returns or raises")

    def _exchange(self, method: str, path: str, body: object) -> tuple[int, Json]:
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        with self._lock:
            try:
                self._connection.request(method, self._base + path, data, headers)
                response = self._connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()  # the next request opens it anew
                raise
        try:
            answer = json.loads(text) if text else {}
        except ValueError:
            answer = {"detail": f"{self.url} does not answer like a scheduler"}
            return max(response.status, 400), answer
        return response.status, answer if isinstance(answer, dict) else {}


class AsyncSchedulerClient:
    """`SchedulerClient` for coroutines: the same methods, each run in a thread."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        *,
        ca: str = "",
        plain_http: bool = False,
    ) -> None:
        self._client = SchedulerClient(url, token, timeout_s, ca=ca, plain_http=plain_http)

    async def __aenter__(self) -> AsyncSchedulerClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._client.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(asyncio.to_thread, getattr(self._client, name))


def _trusting(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca or None)
    except (OSError, ssl.SSLError) as error:
        raise BadInput(f"the authorities in {ca} cannot be read: {error}", "a PEM file") from error


def _port(parts: SplitResult) -> int:
    try:
        return parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise BadInput(f"{plain_url(parts.geturl())!r} has no port that is a number") from None


def _part(text: str) -> str:
    return quote(text, safe="")
