"""Which fixes, in which order, and whether the configuration and the memory allow them."""
