"""A run as chains of work and collectives, and as it would be without a cause."""
