"""Real nodes in network namespaces of their own, faults drawn from a seed, judged by the target."""
