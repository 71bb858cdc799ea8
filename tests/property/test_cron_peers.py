"""The next run against croniter and cronsim: random expressions, zones and instants.

Where the two agree, so do we, but for the two classes in which the specification decides
otherwise. Where they differ, the reason is one of the classes that docs/cron.md lists. A few
thousand triples by default; TESTS_CRON_TRIPLES=100000 for the long proof.
"""

from __future__ import annotations

import os
import random
import re
import signal
from collections import Counter
from datetime import UTC, datetime
from types import FrameType
from zoneinfo import ZoneInfo

import pytest
from croniter import CroniterError, croniter
from cronsim import CronSim, CronSimError

from hyperscale.scheduler.schedules.cron import Cron, CronError
from hyperscale.scheduler.schedules.cron.zones import offsets_of
from tests.property.cron_world import ZONES, expression, instant

TRIPLES = int(os.environ.get("TESTS_CRON_TRIPLES", "4000"))
SEEDS = 8
DAY_S = 86_400
NEVER = "never"
ENDLESS = "no answer"
PATIENCE_CPU_S = 2.0
NEW_YORK = "America/New_York"
SAO_PAULO = "America/Sao_Paulo"

Answer = datetime | str


def ours(text: str, zone: str, after: datetime) -> Answer:
    try:
        return Cron.parse(text).next(after, zone) or NEVER
    except CronError:
        return NEVER


def of_croniter(text: str, zone: str, after: datetime) -> Answer:
    local = after.astimezone(ZoneInfo(zone))
    try:
        found = croniter(text, local, datetime, second_at_beginning=True).get_next(datetime)
        return found.astimezone(UTC)
    except CroniterError:
        return NEVER


class GaveUp(Exception):
    pass


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise GaveUp


def of_cronsim(text: str, zone: str, after: datetime) -> Answer:
    """Where clocks change a minute after midnight it may search for ever."""
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_CPU_S)
    try:
        return next(CronSim(text, after.astimezone(ZoneInfo(zone)))).astimezone(UTC)
    except (CronSimError, StopIteration):
        return NEVER
    except GaveUp:
        return ENDLESS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def restricted_hours(text: str) -> bool:
    return not Cron.parse(text).fields.hourly


def against_both(text: str, zone: str, mine: Answer, theirs: Answer) -> str | None:
    """The class in which the specification differs from what both peers say."""
    if re.search(r"\b(\d+)-\1\b", text):
        return "range of one value"
    if mine == NEVER or theirs == NEVER:
        return None
    assert isinstance(mine, datetime)
    assert isinstance(theirs, datetime)
    for answer in (mine, theirs):
        second = int(answer.timestamp())
        span = offsets_of(zone).at(second)
        since, gap = second - span.start, span.offset - span.before
        if answer is mine and restricted_hours(text) and 0 <= since < gap:
            return "gap"  # moved by its width, not to its end
        if answer is theirs and gap > 0 and since == 0:
            return "gap"
        if answer is theirs and restricted_hours(text) and 0 <= since < -gap:
            return "repetition"  # six fields: both run it twice
    return None


def between_them(text: str, zone: str, answers: tuple[Answer, ...], after: datetime) -> str | None:
    """The class in which the peers differ from each other."""
    if ENDLESS in answers:
        return "a search without end"
    *_, day, _month, weekday = text.split()
    if re.search(r"\b(\d+)-\1\b", text):
        return "range of one value"
    if "*" in day + weekday and day != "*" and weekday != "*":
        return "stepped star in a day field"
    if any(
        isinstance(answer, datetime) and near_change(zone, answer) for answer in (*answers, after)
    ):
        return "change of the clock"
    return None


def near_change(zone: str, answer: datetime) -> bool:
    second = int(answer.timestamp())
    offsets = offsets_of(zone)
    around = {offsets.at(second + shift).offset for shift in (-DAY_S, 0, DAY_S)}
    return len(around) > 1


@pytest.mark.parametrize("seed", range(SEEDS))
def test_we_agree_where_they_agree(seed: int) -> None:
    dice = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(TRIPLES // SEEDS):
        text, zone = expression(dice), dice.choice(ZONES)
        after = instant(dice, zone)
        mine = ours(text, zone, after)
        theirs = of_croniter(text, zone, after), of_cronsim(text, zone, after)
        triple = (text, zone, str(after), str(mine), *map(str, theirs))
        if theirs[0] != theirs[1]:
            reason = between_them(text, zone, theirs, after)
            assert reason is not None, triple
            seen[f"they differ: {reason}"] += 1
        elif mine == theirs[0]:
            seen["all agree"] += 1
        else:
            reason = against_both(text, zone, mine, theirs[0])
            assert reason is not None, triple
            seen[f"we differ: {reason}"] += 1
    # The comparison is worth something only while nearly all triples are judged by it.
    assert seen["all agree"] > 0.85 * (TRIPLES // SEEDS), seen


TABLE = [
    # expression, zone, after, ours, croniter, cronsim: the rows of docs/cron.md
    ("30 2 * * *", NEW_YORK, "2024-03-10 06:00", "03-10 07:30", "03-10 07:00", "03-10 07:00"),
    ("0 */2 * * *", NEW_YORK, "2024-03-10 06:00", "03-10 08:00", "03-10 07:00", "03-10 08:00"),
    ("*/20 2 * * *", NEW_YORK, "2024-03-10 07:10", "03-10 07:20", "03-11 06:00", "03-11 06:00"),
    ("30 1 * * *", NEW_YORK, "2024-11-03 05:45", "11-04 06:30", "11-03 06:30", "11-04 06:30"),
    ("0 30 1 * * *", NEW_YORK, "2024-11-03 05:45", "11-04 06:30", "11-03 06:30", "11-03 06:30"),
    ("*/20 1 * * *", NEW_YORK, "2024-11-03 05:45", "11-04 06:00", "11-03 06:00", "11-03 06:00"),
    ("*/20 2 * * *", NEW_YORK, "2024-03-10 06:50", "03-10 07:00", "03-10 07:00", "03-11 06:00"),
    ("0 */5 * * SUN", SAO_PAULO, "2018-11-02 12:00", "11-04 07:00", "11-04 03:00", "11-04 03:00"),
    ("0 9 */10 * MON", "UTC", "2024-01-02 00:00", "01-08 09:00", "01-08 09:00", "03-11 09:00"),
    ("0 9 15 * */1", "UTC", "2024-01-02 00:00", "01-15 09:00", "01-02 09:00", "01-15 09:00"),
    ("0 9 * * 5-5", "UTC", "2024-01-02 00:00", "01-05 09:00", "01-02 09:00", "01-05 09:00"),
    ("0 9 5-5/10 * *", "UTC", "2024-01-06 00:00", "02-05 09:00", "01-11 09:00", "01-15 09:00"),
    ("0 9 * * FRI-SUN", "UTC", "2024-01-06 12:00", "01-07 09:00", "01-07 09:00", NEVER),
    ("0 23-1 * * *", "UTC", "2024-01-06 12:00", NEVER, "01-06 23:00", NEVER),
    ("0 9 L * *", "UTC", "2024-01-06 12:00", NEVER, "01-31 09:00", "01-31 09:00"),
    ("0 9 ? * MON", "UTC", "2024-01-06 12:00", NEVER, "01-08 09:00", NEVER),
]  # fmt: skip


@pytest.mark.parametrize(("text", "zone", "after", "mine", "croniters", "cronsims"), TABLE)
def test_the_listed_disagreements_are_as_listed(
    text: str, zone: str, after: str, mine: str, croniters: str, cronsims: str
) -> None:
    here = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = [ask(text, zone, here) for ask in (ours, of_croniter, of_cronsim)]
    shown = [due if isinstance(due, str) else f"{due:%m-%d %H:%M}" for due in found]
    assert shown == [mine, croniters, cronsims]
