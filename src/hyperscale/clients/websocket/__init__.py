"""WebSocket: `client` is what a virtual user calls with, `session` a connection of it."""
