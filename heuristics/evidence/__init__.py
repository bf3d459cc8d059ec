"""What opinions rest on: measurements of a trace, or symptoms in their place."""
