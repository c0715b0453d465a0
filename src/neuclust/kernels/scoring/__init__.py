"""Compiled loops that score many arms under a learned model."""
