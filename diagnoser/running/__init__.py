"""What a command does: files and what is asked of them -> the typed result."""
