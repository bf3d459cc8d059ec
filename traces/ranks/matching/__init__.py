"""Which collectives of different ranks are one, by name or by order."""
