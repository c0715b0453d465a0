"""The log of a recommender, and learning from logs."""
