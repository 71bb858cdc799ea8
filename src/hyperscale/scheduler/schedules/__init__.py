"""When something is due: cron, schedules, their ticks, firing and overlap."""
