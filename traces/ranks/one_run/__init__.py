"""Which recordings are of one run, and its one clock."""
