"""What tests see: random small wrong lines in the product, each judged by the tests that could see it."""
