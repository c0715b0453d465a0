"""The readings of a paper on a page: specification curve and tables."""
