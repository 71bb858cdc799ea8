"""NATS: `protocol` are its bytes, `session` is a connection, `client` what a user calls with."""
