"""Reaching a host, for any protocol: names, addresses, TLS, and why it failed."""
