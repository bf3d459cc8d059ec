"""What went wrong in a run, by its log and its configuration: one row of a table for each cause."""
