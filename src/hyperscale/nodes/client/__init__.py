"""A client of a cluster: submits jobs, follows them, asks about them."""
