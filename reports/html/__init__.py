"""Pages: one file each, that asks for nothing and reads without JavaScript."""
