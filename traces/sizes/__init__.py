"""Sizes of a run in numbers, from its configuration alone: parameters, memory, operations,
throughput.
"""
