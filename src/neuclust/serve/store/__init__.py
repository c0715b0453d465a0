"""Where the service keeps its log, models and keys: one contract, on SQLite and on PostgreSQL."""
