"""What the contract's methods do, as functions of `Records` (one atomic step each)."""
