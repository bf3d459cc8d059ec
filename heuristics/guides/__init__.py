"""Choices that NVIDIA's guides make by table: tables as data, and the rule that fired by name."""
