"""What must not be lost: write-ahead log, recovery, job events, idempotent submission."""
