"""One script a question; each prints a small table measured in that run."""
