"""A training log as facts: iteration times, versions, memory, what was said that matters."""
