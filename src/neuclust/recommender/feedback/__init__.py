"""Decisions between recommending and learning, and the feedback on them."""
