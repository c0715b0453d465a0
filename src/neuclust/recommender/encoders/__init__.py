"""Columns of plain values as columns of numbers."""
