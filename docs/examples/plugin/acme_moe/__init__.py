"""What ACME knows of its own cluster, for moe-diag: fixes here in fixes.py, rules in rules.toml."""
