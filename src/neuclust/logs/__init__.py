"""What was shown and what came back: the log format, its writers and readers."""
