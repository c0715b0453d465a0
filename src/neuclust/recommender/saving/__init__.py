"""A recommender in a folder, and back."""
