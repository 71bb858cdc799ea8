"""That a certificate is about to expire is said in time, and not too often."""

from __future__ import annotations

from typing import Any

import pytest

from hyperscale.nodes.member.certificate_files import DAY_S, CertificateFiles
from hyperscale.wire.certificates import Validity


class Clock:
    at = 0.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at


class Log:
    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def warning(self, event: str, **facts: Any) -> None:
        self.said.append({"event": event, **facts})


@pytest.mark.parametrize(("days", "first_day"), [(90, 76), (9, 6), (365, 351)])
def test_once_a_day_from_two_weeks_or_a_third_before_the_end(days: int, first_day: int) -> None:
    clock, log = Clock(), Log()
    files = CertificateFiles(clock, None, None, log)  # type: ignore[arg-type]
    files.validity = Validity(1, 0.0, days * DAY_S)
    told: list[float] = []
    for quarter in range(days * 4):
        clock.at = quarter * DAY_S / 4
        before = len(log.said)
        files.look()
        assert bool(files.remark) == (clock.at >= first_day * DAY_S)
        told += [clock.at / DAY_S] * (len(log.said) - before)
    assert told == list(range(first_day, days))
    assert log.said[0] == {
        "event": "certificate expires",
        "days_left": days - first_day,
        "renew": "hyperscale certs renew",
    }
    clock.at = first_day * DAY_S
    left = f"{days - first_day:.1f}"
    assert files.remark == f"its certificate expires in {left} days: hyperscale certs renew"
