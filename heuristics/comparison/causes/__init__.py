"""The one table of what can explain a difference of two runs, whatever shows it."""
