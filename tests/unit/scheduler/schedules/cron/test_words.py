"""Expressions in words: one sentence for each way of choosing times and days."""

from __future__ import annotations

import pytest

from hyperscale.scheduler.schedules.cron import Cron
from hyperscale.scheduler.schedules.cron.words import in_words


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/1 * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("0,15,30,45 * * * *", "every 15 minutes"),
        ("*/7 * * * *", "every 7 minutes from minute 0 to 56 of every hour"),
        ("*/40 * * * *", "at minutes 0 and 40 of every hour"),
        ("0-30 * * * *", "at minutes 0 to 30 of every hour"),
        ("0 * * * *", "every hour, at minute 0"),
        ("30 */2 * * *", "every 2 hours, at minute 30"),
        ("30 2 * * *", "at 02:30 every day"),
        ("0 9,13,17 * * *", "at 09:00, 13:00 and 17:00 every day"),
        ("30 */7 * * *", "at 00:30, 07:30, 14:30 and 21:30 every day"),
        ("* 2 * * *", "every minute, in the hour 02"),
        ("* 9-17 * * *", "every minute, from 09:00 to 17:59"),
        ("*/5 */6 * * *", "every 5 minutes, in every hour divisible by 6"),
        ("*/5 9-17 * * MON-FRI", "every 5 minutes, from 09:00 to 17:59, from Monday to Friday"),
        ("0 9 * * 1", "at 09:00 on Mondays"),
        ("0 0 * * SAT,SUN", "at 00:00 on Saturdays and Sundays"),
        ("0 0 * * FRI-SUN", "at 00:00 from Friday to Sunday"),
        ("0 0 * * 0-6", "at 00:00 every day"),
        ("0 0 1 * 0-6", "at 00:00 on day 1 of the month, or on every day of the week"),
        ("0 0 1 1 *", "at 00:00 on 1 January"),
        ("0 0 1,15 * *", "at 00:00 on days 1 and 15 of the month"),
        ("0 0 1-7 * *", "at 00:00 on days 1 to 7 of the month"),
        ("0 0 1-7 6 *", "at 00:00 on 1 to 7 June"),
        ("0 9 15 * 1", "at 09:00 on day 15 of the month, or on Mondays"),
        ("0 9 15 6 1", "at 09:00 on day 15 of the month, or on Mondays, in June"),
        ("0 0 1-31 * MON", "at 00:00 on every day of the month, or on Mondays"),
        ("0 0 * 6-8 *", "at 00:00 every day, from June to August"),
        ("0 0 * 1,7 *", "at 00:00 every day, in January and July"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("*/5 */5 * * * *", "every 5 seconds, in every minute divisible by 5"),
        ("*/5 10-20 * * * *", "every 5 seconds, in minutes 10 to 20"),
        ("0 */5 * * * *", "every 5 minutes"),
        ("30 0 9 * * 1-5", "at 09:00:30 from Monday to Friday"),
        ("30 * * * * *", "at second 30 of every minute"),
        ("0 9 * * * Europe/Berlin", "at 09:00 every day (Europe/Berlin time)"),
        ("@weekly", "at 00:00 on Sundays"),
    ],
)
def test_in_words(expression: str, words: str) -> None:
    assert in_words(Cron.parse(expression).fields) == words
