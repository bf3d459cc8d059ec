"""What one rank's recording gives to its run: measured, as a summary, and as bytes."""
