"""What no document and no page may say against itself, another or its figures: each rule by name."""
