"""The settings of a process that serves the API."""
