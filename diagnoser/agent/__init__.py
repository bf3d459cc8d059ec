"""Answers for programs that ask in place of a person: `moe-diag mcp`."""
