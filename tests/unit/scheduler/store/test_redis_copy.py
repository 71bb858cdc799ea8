"""The copy steps run on: what is lacking is fetched in the right order, and tokens are fresh."""

from __future__ import annotations

import pytest

from hyperscale.scheduler.store.redis import keys
from hyperscale.scheduler.store.redis.copy import (
    FIELDS_PER_COMMAND_MAX,
    RECENT_MAX,
    Copy,
    Missing,
    Recent,
)


def test_what_is_lacking_comes_in_one_trip_lines_before_instances() -> None:
    copy = Copy(Recent())
    for ask in (
        lambda: copy.live("s"),
        lambda: copy.size(keys.RUNS),
        lambda: copy.field(("table:lines", "s")),
        lambda: copy.field((keys.RUNS, "a"), (keys.HEADS, "a")),
    ):
        with pytest.raises(Missing):
            ask()
    lacking = copy.lacks()
    assert [command[:2] for command in lacking] == [
        ("HMGET", keys.HEADS),
        ("HMGET", keys.RUNS),
        ("HMGET", "table:lines"),
        ("ZRANGEBYLEX", keys.LIVE),
        ("ZCARD", keys.DONE),
        ("HLEN", keys.RUNS),
    ]
    member = keys.under("s", keys.time_member(5, "a")).encode()
    copy.learn(lacking, [[b"head"], [b"run"], [None], [member], 2, 7])
    assert copy.lacks() == []
    assert copy.field((keys.RUNS, "a")) == b"run"
    assert copy.field(("table:lines", "s")) is None
    assert (copy.live("s"), copy.size(keys.RUNS), copy.trips) == (["a"], 7, 1)


def test_no_command_has_more_arguments_than_a_script_can_hand_over() -> None:
    copy = Copy(Recent())
    wanted = [f"job-{number:05}" for number in range(2 * FIELDS_PER_COMMAND_MAX + 1)]
    for job_id in wanted:
        with pytest.raises(Missing):
            copy.field((keys.RUNS, job_id))
    with pytest.raises(Missing):
        copy.live("s")
    *reading, line, ended, size = copy.lacks()
    assert [len(fields) for _, _, *fields in reading] == [1000, 1000, 1]
    member = keys.under("s", keys.time_member(5, "a")).encode()
    answers = [[field.encode() for field in fields] for _, _, *fields in reading]
    copy.learn([*reading, line, ended, size], [*answers, [member], 2, 9])
    assert [copy.field((keys.RUNS, job_id)) for job_id in wanted] == [i.encode() for i in wanted]
    assert (copy.live("s"), copy.trips, copy.lacks()) == (["a"], 1, [])


def test_a_token_is_drawn_after_everything_that_was_read() -> None:
    copy = Copy(Recent())
    with pytest.raises(Missing):
        copy.token()
    drawing = copy.lacks()
    assert drawing == [("HINCRBY", keys.COUNTERS, keys.TOKENS, 1)]
    copy.learn(drawing, [41])
    copy.restart()
    with pytest.raises(Missing):
        copy.field((keys.RUNS, "a"))
    reading = copy.lacks()
    assert [command[:2] for command in reading] == [
        ("HMGET", keys.RUNS),
        ("ZCARD", keys.DONE),
        ("HLEN", keys.RUNS),
    ]
    copy.learn(reading, [[b"run, perhaps with token 50"], 0, 1])
    with pytest.raises(Missing):
        copy.token()


def test_steps_see_what_the_steps_before_wrote_until_they_run_again() -> None:
    copy = Copy(Recent())
    copy.learn([("HLEN", keys.RUNS)], [3])
    copy.keep({(keys.RUNS, "a"): b"new"}, [("s", "a")], {keys.RUNS: 1})
    assert copy.field((keys.RUNS, "a")) == b"new"
    assert copy.size(keys.RUNS) == 4
    copy.restart()
    assert copy.size(keys.RUNS) == 3
    with pytest.raises(Missing):
        copy.field((keys.RUNS, "a"))


def test_what_a_claim_brought_is_trusted_once_and_checked() -> None:
    recent = Recent()
    recent.put("a", b"head", b"run")
    copy = Copy(recent)
    assert not copy.trusted
    assert copy.field((keys.RUNS, "a"), (keys.HEADS, "a")) == b"run"
    assert copy.field((keys.HEADS, "a")) == b"head"
    assert (copy.trusted, copy.trips, copy.lacks()) == (True, 0, [])
    with pytest.raises(Missing):
        Copy(recent).field((keys.RUNS, "a"), (keys.HEADS, "a"))


def test_only_the_newest_claims_are_kept() -> None:
    recent = Recent()
    for number in range(RECENT_MAX):
        recent.put(f"j{number}", b"head", b"run")
    assert recent.take((keys.RUNS, "j0")) is None
    assert recent.take((keys.RUNS, f"j{RECENT_MAX - 1}")) == b"run"
