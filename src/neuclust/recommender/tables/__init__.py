"""Tables of items and users as plain values, and what is said about their columns."""
