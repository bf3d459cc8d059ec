"""Configurations, logs and what stands in for a framework's core, said as knobs or as files."""
