"""A small real MoE training step in a known state, recorded by the PyTorch profiler or nsys."""
