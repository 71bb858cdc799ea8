"""Where everything is kept: one store over a ground that a database brings."""
