"""How often the product is right about the third simulator's runs, as a user has it: files in, answer out."""
