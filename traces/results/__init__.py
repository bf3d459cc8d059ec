"""Earlier results: a finished document read back as facts, whether it is a file or was just made."""
