"""Published logs: who was shown what, how likely that was, and what came back."""
