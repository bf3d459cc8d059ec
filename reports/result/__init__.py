"""The typed result as JSON and back: one codec, its schema, and the words for its fields."""
