"""HTTPS of a real scheduler: who trusts it, and where tokens are not sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.http.client import SchedulerClient, Unreachable
from tests.integration.clients.certificates import Authority
from tests.integration.scheduler.scheduler_process import SchedulerProcess, scheduler_process

TOKEN = "a-token-for-the-administrator"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def scheduler(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[SchedulerProcess]:
    pem = authority.issue("localhost")
    with scheduler_process(
        tmp_path_factory.mktemp("tls"),
        *("--tls-cert", pem, "--tls-key", pem, "--no-worker"),
        HYPERSCALE_SCHEDULER_TOKEN=TOKEN,
    ) as running:
        yield running
    assert running.process.returncode == 0


def test_whoever_trusts_the_authority_is_served(
    scheduler: SchedulerProcess, authority: Authority
) -> None:
    assert scheduler.url.startswith("https://")
    with SchedulerClient(scheduler.url, TOKEN, ca=authority.ca) as client:
        made = client.submit_job(name="sealed", payload={"url": "http://127.0.0.1:1/"})
        assert client.job(made["job_id"])["name"] == "sealed"
    assert "sealed" in scheduler.command("job", "list", "--ca", authority.ca)


def test_an_authority_nobody_knows_is_one_sentence(scheduler: SchedulerProcess) -> None:
    with (
        SchedulerClient(scheduler.url, TOKEN) as client,
        pytest.raises(Unreachable, match="is not trusted"),
    ):
        client.overview()
    said = scheduler.command("job", "list", expect=1)
    assert "--ca FILE" in said
    assert "Traceback" not in said


def test_plain_http_is_not_answered(scheduler: SchedulerProcess) -> None:
    plain = scheduler.url.replace("https", "http")
    with SchedulerClient(plain, TOKEN) as client, pytest.raises(Unreachable):
        client.delete_schedule("x")


def test_a_token_is_not_sent_unencrypted_to_another_machine() -> None:
    with pytest.raises(BadInput, match=r"unencrypted to 10\.0\.0\.1"):
        SchedulerClient("http://10.0.0.1:8090", TOKEN)
    SchedulerClient("http://10.0.0.1:8090", TOKEN, plain_http=True).close()
    SchedulerClient("http://10.0.0.1:8090").close()


def test_a_scheduler_for_a_network_wants_tls_or_to_be_told(tmp_path: Path) -> None:
    with scheduler_process(tmp_path, "--no-worker") as scheduler:
        words = ("scheduler", "--host", "0.0.0.0", "--port", "0")
        said = scheduler.command(*words, "--open", expect=2)
        assert "open to everybody" in said
        (tmp_path / "tokens").write_text(f"anna admin {TOKEN}\n")
        (tmp_path / "tokens").chmod(0o600)
        said = scheduler.command(*words, "--tokens", "tokens", expect=2)
        assert "--plain-http" in said
        said = scheduler.command(*words, "--tokens", "tokens", "--tls-cert", "a.pem", expect=2)
        assert "belong together" in said
