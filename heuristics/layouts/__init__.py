"""Layouts of a model on a number of GPUs: which divide, which fit, in which order to try them."""
