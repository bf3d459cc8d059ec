"""How much work the program is, beside others on the same files; `make bench` runs it, no test does."""
