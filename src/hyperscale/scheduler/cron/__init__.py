"""Cron expressions: read, explained, and turned into instants. Pure: no clock is read here."""

from hyperscale.scheduler.cron.expression import Cron, DstPolicy, Fields
from hyperscale.scheduler.cron.parser import Parsed, check
from hyperscale.scheduler.cron.problems import CronError, Kind, Problem

__all__ = ["Cron", "CronError", "DstPolicy", "Fields", "Kind", "Parsed", "Problem", "check"]
