"""What becomes of a job: its life, claims, reports, retries, keys, sweeps, emergency stop."""
