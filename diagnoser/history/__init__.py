"""Results kept over time in one local SQLite file: add, list, baseline."""
