from __future__ import annotations

import pytest

from hyperscale.config.sections import Reading, Sources
from hyperscale.errors import BadInput
from hyperscale.scheduler.http.settings import SECTIONS
from hyperscale.scheduler.settings import SchedulerSettings, scheduler_settings


def settings_from(
    flags: dict[str, object], env: dict[str, str], table: dict[str, object]
) -> SchedulerSettings:
    return scheduler_settings(Reading(Sources(flags, env, {"scheduler": table}), SECTIONS))


def test_flag_beats_environment_beats_table_beats_default() -> None:
    settings = settings_from(
        {"slots": 9, "store": None},
        {"HYPERSCALE_SCHEDULER_SLOTS": "8", "HYPERSCALE_SCHEDULER_COMMAND": "yes"},
        {
            "slots": 7,
            "election-ttl-s": 30,
            "python-allow": ["a:b", "c:*"],
            "keep": {"job-s": 60, "log_s": 5},
        },
    )
    assert settings.slots == 9
    assert settings.command is True
    assert settings.election_ttl_s == 30.0
    assert settings.python_allow == ("a:b", "c:*")
    assert (settings.keep.job_s, settings.keep.log_s) == (60.0, 5.0)
    assert settings.store == SchedulerSettings().store


@pytest.mark.parametrize(
    "table",
    [
        {"slotz": 1},
        {"slots": "many"},
        {"slots": 0},
        {"command": "perhaps"},
        {"election-ttl-s": 0.1},
        {"beat-s": 40},
        {"keep": {"x": 1}},
        {"keep": 5},
        {"grace-s": "nan"},
        {"etcd-user": "somebody"},
        {"etcd-ca": "ca.pem"},
        {"election": "etcds://h:2379", "etcd-cert": "c.pem"},
    ],
)
def test_bad_names_and_values_are_told(table: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        settings_from({}, {}, table)


def test_a_password_comes_from_the_environment_and_is_not_shown() -> None:
    settings = settings_from(
        {"election": "etcds://a:2379"},
        {
            "HYPERSCALE_SCHEDULER_ETCD_USER": "scheduler",
            "HYPERSCALE_SCHEDULER_ETCD_PASSWORD": "secret",
        },
        {"etcd-ca": "ca.pem"},
    )
    assert (settings.etcd_user, settings.etcd_password) == ("scheduler", "secret")
    assert "secret" not in repr(settings)
