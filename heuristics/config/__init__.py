"""What a run is configured to do: the only reader of settings."""
