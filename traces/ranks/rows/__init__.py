"""Rows of many ranks: figures of parts that stand together, and what came before a time."""
