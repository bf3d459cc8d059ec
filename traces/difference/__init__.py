"""What differs between two results, in integers that add up. Opinions are in heuristics.comparison."""
