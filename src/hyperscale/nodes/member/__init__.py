"""A bare cluster member: membership and election on a host, and nothing else."""
