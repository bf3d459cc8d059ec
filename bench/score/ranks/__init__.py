"""How often the product is right about runs of several ranks: who is late, why, and what it costs."""
