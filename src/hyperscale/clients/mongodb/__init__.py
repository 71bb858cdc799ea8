"""MongoDB: `connection` sends commands and takes replies, `scram` logs in, `client` is what a user
calls with."""
