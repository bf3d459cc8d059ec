"""The score: simulated runs whose true costs are known, and how well the diagnosis finds them again."""
