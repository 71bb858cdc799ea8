"""Import paths that existing tests use. The names live in `hyperscale.graph` and `.testing`."""
