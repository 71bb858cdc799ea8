"""Cron expressions: read, explained, and turned into instants. Pure: no clock is read here."""

from hyperscale.scheduler.schedules.cron.expression import Cron, DstPolicy, Fields
from hyperscale.scheduler.schedules.cron.parser import Parsed, check
from hyperscale.scheduler.schedules.cron.problems import CronError, Kind, Problem

__all__ = ["Cron", "CronError", "DstPolicy", "Fields", "Kind", "Parsed", "Problem", "check"]
