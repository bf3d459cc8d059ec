"""A second witness beside the recordings: what PyTorch and NCCL wrote themselves of a run's
collectives.
"""
