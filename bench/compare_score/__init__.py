"""The score of `compare`: pairs of simulated runs of which it is known what changed, and by how much."""
