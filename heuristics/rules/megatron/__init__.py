"""What is asked of the real megatron-core about a configuration, and what its answers mean."""
