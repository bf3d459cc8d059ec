"""Kernel and NVTX names -> what they are. Ordered tables as data, and their matchers."""
