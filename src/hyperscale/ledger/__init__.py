"""What must not be lost: the write-ahead log, checkpoints of what was built from it, and what
stands on them."""
