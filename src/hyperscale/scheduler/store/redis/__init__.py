"""The shared store: one Redis (or one slot of a Redis cluster), used by many machines."""
