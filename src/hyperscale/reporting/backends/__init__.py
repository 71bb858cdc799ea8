"""A file for each backend: its config, and what sends to it."""
