"""What rewards of a log mean, and what decisions count of which none is known."""
