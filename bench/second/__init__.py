"""A second simulator, by other rules than the first: what the product was not tuned on."""
