"""Who runs jobs: a worker, its slots, reports and executors."""
