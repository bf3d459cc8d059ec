"""Two runs compared by their configurations and logs, without a trace."""
