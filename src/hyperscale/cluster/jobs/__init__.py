"""Jobs of one datacenter: decided by the leading manager, remembered by a quorum."""
