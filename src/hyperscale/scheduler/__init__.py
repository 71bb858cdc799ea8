"""Jobs by the clock: cron, schedules, a durable queue, coordinators and workers."""
