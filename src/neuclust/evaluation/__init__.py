"""What another policy would have earned, from a log: estimators, intervals, choices (docs/evaluation.md)."""
