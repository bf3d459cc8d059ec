"""A comparison in words: its document, and the renderers of it. They compute nothing."""
