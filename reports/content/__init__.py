"""What is said, once: pages of blocks, filled from a typed result. `reports/write` turns them into
bytes.
"""
