"""A browser: pages in Chromium, driven by `playwright`."""
