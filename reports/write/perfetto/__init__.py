"""Timelines for ui.perfetto.dev: events of the trace-event format."""
