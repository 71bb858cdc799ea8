"""What runs a job of each kind: HTTP requests, load tests, Python functions, programs."""
