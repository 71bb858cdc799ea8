"""Sockets without transports: what every protocol client reads and writes through."""
