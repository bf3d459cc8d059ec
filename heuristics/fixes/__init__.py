"""One file a fix, named after its id in the catalogue: knobs, what it needs, what it gives, how to verify."""
