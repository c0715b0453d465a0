"""Items and users by id, raw and encoded."""
