"""The scheduler over HTTP: `/api/v1`, health, metrics and the page."""
