"""The dictionary of facts, and the facts of a configuration, a file a subject."""
