"""Why each item was shown."""
