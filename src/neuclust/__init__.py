"""neuclust: choose K of many, again and again, and learn from what happens."""

__version__ = "0.1.0"
