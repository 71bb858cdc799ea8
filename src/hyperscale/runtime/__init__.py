"""The world behind an interface (`host`), and its real body (`real`)."""
