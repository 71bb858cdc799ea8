"""Tests that `hyperscale demo` runs. A test's folder is on its path, so it has one of its own."""
