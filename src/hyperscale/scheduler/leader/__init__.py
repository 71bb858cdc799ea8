"""Who decides: elections, the coordinator, and what a leader does during its term."""
