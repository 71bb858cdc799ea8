"""Gates: one job in many datacenters, held by a group of gates, with one result."""
